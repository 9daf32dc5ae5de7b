"""Sends the requests of reruns and forks to live endpoints."""

__all__ = ["forking", "rerunning", "tool_files"]
