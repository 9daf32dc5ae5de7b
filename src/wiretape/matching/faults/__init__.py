"""Reads `--fault`, resolves its targets, and changes playbacks."""

__all__ = ["apply", "specs", "targets"]
