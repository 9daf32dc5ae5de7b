"""Explains what the prompt cache served, and why not more."""

__all__ = ["diagnosis", "findings", "prefix_tree", "report"]
