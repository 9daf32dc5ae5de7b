"""Finds the agents of a run and what they send to one another."""
