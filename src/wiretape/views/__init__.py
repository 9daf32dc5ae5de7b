"""Turns values into something to look at: terminal, tables, pages."""
