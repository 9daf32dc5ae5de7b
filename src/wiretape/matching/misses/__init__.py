"""Explains a miss: the nearest recorded call and what differs."""

__all__ = ["miss", "nearest_moved"]
