"""Sends the requests of reruns and forks to live endpoints."""
