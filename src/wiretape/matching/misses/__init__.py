"""Explains a miss: the nearest recorded call, and how it differs."""

__all__ = ["explainer", "miss_text", "nearest"]
