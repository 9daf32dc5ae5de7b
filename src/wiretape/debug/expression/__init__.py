"""The expression language of conditions, `watch` and `print`."""

__all__ = ["expression", "jsonpaths", "names", "parsing", "values"]
