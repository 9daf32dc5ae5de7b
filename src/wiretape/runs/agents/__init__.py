"""Finds the agents of a run and what they send to one another."""

__all__ = ["agent_messages", "assigner", "links", "names"]
