"""Holds calls in the recording proxy for the debugger."""
