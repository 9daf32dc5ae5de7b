"""Formats numbers for people. An unknown number is `?` or `unknown`, never 0."""

from __future__ import annotations

from rich.text import Text

from wiretape.analyze.report import CostSum, UsageSum
from wiretape.model.wording import UNKNOWN, plural

BAR_WIDTH = 12


def short_sum(usage: UsageSum, field: str, calls: int) -> str:
    """Format a sum for a table: `809 +2?` means 809, and two calls without a number."""
    value, unknown = getattr(usage, field), _unknown(usage, field, calls)
    return UNKNOWN if value is None else f"{value:,} +{unknown}?" if unknown else f"{value:,}"


def long_sum(usage: UsageSum, field: str, calls: int) -> str:
    """Format a sum in words: `809 + 2 calls unknown`."""
    value, unknown = getattr(usage, field), _unknown(usage, field, calls)
    if value is None:
        return "unknown"
    return f"{value:,} + {plural(unknown, 'call')} unknown" if unknown else f"{value:,}"


def _unknown(usage: UsageSum, field: str, calls: int) -> int:
    """Number of calls that do not report a field."""
    return min(calls, max(usage.unknown.get(field, 0), usage.unknown_calls))


def percent(rate: float | None) -> str:
    """Format a rate. Rates near 0 and 1 are not rounded to 0% and 100%."""
    if rate is None:
        return "unknown"
    if 0 < rate < 0.01:
        return "<1%"
    if 0.99 < rate < 1:
        return ">99%"
    return f"{rate:.0%}"


def money(usd: float | None) -> str:
    """Format US dollars. Small amounts keep two significant digits."""
    if usd is None:
        return UNKNOWN
    if usd >= 0.995 or usd == 0:
        return f"${usd:,.2f}"
    places = next((n for n in range(2, 12) if usd >= 10 ** (1 - n)), 12)
    return f"${usd:.{places}f}"


def short_cost(cost: CostSum) -> str:
    """Format a cost for a table: `≈` if a part is estimated, `+2?` for two calls with unknown cost."""
    if cost.usd is None:
        return UNKNOWN
    about = "≈" if cost.estimated_calls else ""
    return f"{about}{money(cost.usd)}" + (f" +{cost.unknown_calls}?" if cost.unknown_calls else "")


def long_cost(cost: CostSum) -> str:
    """Format a cost in words."""
    if cost.usd is None:
        return "unknown"
    unknown = f" + {plural(cost.unknown_calls, 'call')} unknown" if cost.unknown_calls else ""
    about = f" ({plural(cost.estimated_calls, 'call')} estimated)" if cost.estimated_calls else ""
    return f"{money(cost.usd)}{unknown}{about}"


def size(number: int) -> str:
    """Format a number of bytes."""
    if number < 1000:
        return f"{number} B"
    value = float(number)
    for unit in ("kB", "MB"):
        value /= 1000
        if value < 999.5:
            return f"{value:.1f} {unit}" if value < 99.95 else f"{value:.0f} {unit}"
    return f"{value / 1000:.1f} GB"


CACHED, FRESH, UNSAID = "█", "░", "┄"  # unsaid: the provider does not report cached tokens


def usage_bar(total: int | None, cached: int | None, most: int, width: int = BAR_WIDTH) -> Text:
    """Render cached and other input tokens as a bar. Empty if the input is unknown."""
    if not total or most <= 0:
        return Text()
    length = max(1, round(width * min(total, most) / most))
    if cached is None:
        return Text(UNSAID * length, style="dim")
    full = round(length * min(cached, total) / total)
    # A part that is not zero has at least one cell.
    full = min(max(full, 1 if cached else 0), length - 1 if cached < total and length > 1 else length)
    return Text.assemble((CACHED * full, "green"), (FRESH * (length - full), "dim"))
