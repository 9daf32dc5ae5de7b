"""Writes tapes in the formats of other tools."""
