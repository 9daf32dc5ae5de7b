"""Reads recordings of other tools."""

__all__ = ["har", "import_source", "importing", "importing_tape", "vcr"]
