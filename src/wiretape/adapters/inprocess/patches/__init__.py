"""Monkeypatches of HTTP libraries, one module for each library."""

__all__ = ["patching", "threads"]
