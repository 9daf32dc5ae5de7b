"""Commands that look at a tape: ls, show, stats, cache, tools."""
