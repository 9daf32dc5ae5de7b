"""Builds the request that a client sends next, for each wire format."""

__all__ = ["base", "builders", "stored_history"]
