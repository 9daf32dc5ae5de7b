"""Recorded and in-memory sockets below the patches."""
