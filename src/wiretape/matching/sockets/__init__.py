"""Matches and plays recorded WebSockets."""

__all__ = ["playing", "recorded_sockets"]
