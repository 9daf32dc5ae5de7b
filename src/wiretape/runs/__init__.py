"""Links model calls into threads, turns, agents and tool results."""

__all__ = ["agent_identity", "agents", "dataflow", "evidence", "keys", "run", "threads", "words"]
