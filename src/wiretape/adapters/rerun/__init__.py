"""Sends the requests of reruns and forks to live endpoints."""

__all__ = ["fork_tape", "live_model", "tool_files"]
