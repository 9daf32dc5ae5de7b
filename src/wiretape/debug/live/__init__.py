"""Stepping through a program that is still running."""

__all__ = ["decisions", "pending_calls", "program", "stepping"]
