"""Renders values for a terminal with rich."""

__all__ = ["call_line", "debug", "doctor", "figures", "findings", "printable", "replay", "show", "stats", "terminal"]
