"""Matches requests whose asynchronous messages stand at another position."""

__all__ = ["alignment", "detect", "history", "match"]
