"""Plays a tape's scheduler without the agent's program."""

__all__ = ["fork", "plan", "report", "scheduler", "values"]
