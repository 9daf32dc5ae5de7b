"""Finds the agents of a run, and the messages between them."""

__all__ = ["agent_messages", "assigner", "links", "names"]
