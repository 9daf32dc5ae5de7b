"""Compares a tape with a later recording of the same program."""

__all__ = ["freshness", "pairing"]
