"""Explains a miss: the nearest recorded call and what differs."""
