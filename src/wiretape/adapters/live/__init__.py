"""Holds the calls of a running program for the debugger."""
