"""Matches requests whose asynchronous messages stand at another position."""
