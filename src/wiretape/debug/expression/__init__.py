"""The expression language of conditions, `watch` and `print`."""

__all__ = ["expression", "names", "parsing", "values"]
