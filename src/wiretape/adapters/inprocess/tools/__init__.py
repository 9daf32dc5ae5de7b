"""`@wiretape.tool`: records and replays the agent's own tools."""
