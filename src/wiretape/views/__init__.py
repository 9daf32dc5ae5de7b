"""Turns values into something to look at on a terminal."""

__all__ = ["call_line", "debug", "doctor", "figures", "findings", "printable", "replay", "show", "stats", "terminal"]
