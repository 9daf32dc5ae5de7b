"""Reads a tape: documents to exchanges."""

__all__ = ["reader", "splitting"]
