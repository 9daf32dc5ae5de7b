"""Bytes to blocks: one file per provider format. Nothing here reads, waits or logs."""
