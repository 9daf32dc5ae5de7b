"""Looks recorded requests up by key, and chooses among equal ones."""
