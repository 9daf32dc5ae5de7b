"""Finds the recorded answer for a live request. Sans-IO: clocks are passed in."""

__all__ = ["age", "faults", "live", "playback", "report", "session", "sockets", "values", "verify"]
