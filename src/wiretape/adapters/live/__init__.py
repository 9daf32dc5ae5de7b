"""Holds the calls of a running program for the debugger."""

__all__ = ["decision_queue", "edit_operations", "exchanges", "holding", "model_calls"]
