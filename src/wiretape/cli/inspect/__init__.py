"""Commands that look at a tape: ls, show, stats, cache, tools."""

__all__: list[str] = []
