"""Writes a tape: exchanges to documents that share bodies."""
