"""Stepping through a program that is still running."""

__all__ = ["pending_calls", "program", "stepping"]
