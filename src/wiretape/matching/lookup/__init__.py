"""Looks recorded requests up by key, and chooses among equal ones."""

__all__ = ["index", "position", "templates", "tie_break", "trie"]
