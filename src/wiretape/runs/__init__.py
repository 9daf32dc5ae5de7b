"""Links model calls into threads, turns, agents and tool results."""

__all__ = ["agent_identity", "agents", "caller_headers", "content_keys", "dataflow", "run", "threads", "user_text"]
