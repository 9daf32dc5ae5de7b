"""Reads a tape: documents to exchanges."""
