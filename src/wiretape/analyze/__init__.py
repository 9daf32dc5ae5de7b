"""Judges a run: tallies, causes, findings."""
