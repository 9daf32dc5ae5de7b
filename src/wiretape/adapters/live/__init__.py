"""Holds the calls of a running program for the debugger."""

__all__ = ["asking", "decision_queue", "edit_operations", "exchanges", "holding", "tape"]
