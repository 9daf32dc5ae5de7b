"""Which call continues which: threads, turns, agents, tool results."""
