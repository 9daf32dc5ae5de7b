"""Writes a tape: exchanges to documents that share bodies."""

__all__ = ["writer"]
