"""The pytest plugin."""

__all__ = ["plugin"]
