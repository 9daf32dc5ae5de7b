"""A small bar of a call's input: how long it is beside the longest, and how much of it the cache served."""

from __future__ import annotations

from rich.text import Text

BAR_WIDTH = 12
CACHED, FRESH, UNSAID = "█", "░", "┄"  # unsaid: the provider does not report cached tokens


def usage_bar(total: int | None, cached: int | None, most: int, width: int = BAR_WIDTH) -> Text:
    """At least one cell for anything above zero; empty when the input is unknown."""
    if not total or most <= 0:
        return Text()
    length = max(1, round(width * min(total, most) / most))
    if cached is None:
        return Text(UNSAID * length, style="dim")
    full = round(length * min(cached, total) / total)
    # Rounding must not claim that nothing, or everything, was served.
    full = min(max(full, 1 if cached else 0), length - 1 if cached < total and length > 1 else length)
    return Text.assemble((CACHED * full, "green"), (FRESH * (length - full), "dim"))
