"""Finds the recorded answer for a live request. Sans-IO: clocks are passed in."""

__all__ = ["faults", "live", "playback", "report", "session", "sockets", "tape_age", "values", "verify"]
