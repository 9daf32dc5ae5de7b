"""Reads `--fault`, resolves its targets, and changes playbacks."""
