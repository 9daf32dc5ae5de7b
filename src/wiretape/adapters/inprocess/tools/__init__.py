"""`@wiretape.tool`: records and replays the agent's own tools."""

__all__ = ["contexts", "decorator", "stub"]
