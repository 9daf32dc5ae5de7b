"""Reads recordings of other tools."""

__all__ = ["documents", "har", "importing", "placing", "source", "vcr"]
