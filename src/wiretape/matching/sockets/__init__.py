"""Matches and plays recorded WebSockets."""
