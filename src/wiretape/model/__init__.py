"""Frozen values that every layer above speaks in: exchanges, calls, loops."""
