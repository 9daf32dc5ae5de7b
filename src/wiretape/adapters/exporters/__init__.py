"""Writes tapes in the formats of other tools."""

__all__ = ["exporting", "har"]
