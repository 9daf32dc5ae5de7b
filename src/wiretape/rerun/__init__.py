"""Plays a tape's scheduler without the agent's program."""
