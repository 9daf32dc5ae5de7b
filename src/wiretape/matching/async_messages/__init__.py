"""Matches requests whose asynchronous messages stand at another position."""

__all__ = ["aligned", "detect", "history", "match", "pieces"]
