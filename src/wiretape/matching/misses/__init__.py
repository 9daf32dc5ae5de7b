"""Explains a miss: the nearest recorded call and what differs."""

__all__ = ["explainer", "miss", "nearest"]
