"""Holds calls in the recording proxy for the debugger."""

__all__ = ["holding"]
