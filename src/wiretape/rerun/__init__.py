"""Replays a tape's conversations without the agent's program, and builds their next requests."""

__all__ = ["fork", "plan", "report", "scheduler", "values"]
