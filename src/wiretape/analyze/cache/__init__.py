"""Explains what the prompt cache served, and why not more."""
