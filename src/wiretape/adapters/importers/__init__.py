"""Reads recordings of other tools."""
