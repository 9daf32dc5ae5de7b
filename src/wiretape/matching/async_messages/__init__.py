"""Matches requests whose asynchronous messages have other positions."""

__all__ = ["alignment", "detect", "history", "match"]
