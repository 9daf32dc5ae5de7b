"""Looks up recorded requests by key, and chooses among equal ones."""

__all__ = ["index", "position", "templates", "tie_break", "trie"]
