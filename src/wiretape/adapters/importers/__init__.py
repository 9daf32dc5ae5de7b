"""Reads recordings of other tools."""

__all__ = ["documents", "har", "importing", "source", "vcr", "write_imported"]
