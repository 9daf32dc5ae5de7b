"""The expression language of conditions, `watch` and `print`."""
