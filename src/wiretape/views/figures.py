"""Numbers as a person reads them. What is unknown says so and is never 0."""

from __future__ import annotations

from wiretape.analyze.report import CostSum, UsageSum
from wiretape.model.wording import plural

UNKNOWN = "?"


def tokens(number: int | None) -> str:
    """A token count in a table."""
    return UNKNOWN if number is None else f"{number:,}"


def short_sum(usage: UsageSum, field: str, calls: int) -> str:
    """A sum in a table: `809 +2?` is 809 and two calls that did not say."""
    value, unknown = getattr(usage, field), _unknown(usage, field, calls)
    return UNKNOWN if value is None else f"{value:,} +{unknown}?" if unknown else f"{value:,}"


def long_sum(usage: UsageSum, field: str, calls: int) -> str:
    """A sum in words: `809 + 2 calls unknown`."""
    value, unknown = getattr(usage, field), _unknown(usage, field, calls)
    if value is None:
        return "unknown"
    return f"{value:,} + {plural(unknown, 'call')} unknown" if unknown else f"{value:,}"


def _unknown(usage: UsageSum, field: str, calls: int) -> int:
    """Calls that do not give this field; a call without any usage gives none."""
    return min(calls, max(usage.unknown.get(field, 0), usage.unknown_calls))


def percent(rate: float | None) -> str:
    """A rate; small and near-full ones are not rounded into none and all."""
    if rate is None:
        return "unknown"
    if 0 < rate < 0.01:
        return "<1%"
    if 0.99 < rate < 1:
        return ">99%"
    return f"{rate:.0%}"


def money(usd: float | None) -> str:
    """US dollars; small sums keep two digits that say something."""
    if usd is None:
        return UNKNOWN
    if usd >= 0.995 or usd == 0:
        return f"${usd:,.2f}"
    places = next((n for n in range(2, 12) if usd >= 10 ** (1 - n)), 12)
    return f"${usd:.{places}f}"


def short_cost(cost: CostSum) -> str:
    """A cost in a table: `≈` where a part is estimated, `+2?` for two calls whose cost is unknown."""
    if cost.usd is None:
        return UNKNOWN
    about = "≈" if cost.estimated_calls else ""
    return f"{about}{money(cost.usd)}" + (f" +{cost.unknown_calls}?" if cost.unknown_calls else "")


def long_cost(cost: CostSum) -> str:
    """A cost in words."""
    if cost.usd is None:
        return "unknown"
    unknown = f" + {plural(cost.unknown_calls, 'call')} unknown" if cost.unknown_calls else ""
    about = f" ({plural(cost.estimated_calls, 'call')} estimated)" if cost.estimated_calls else ""
    return f"{money(cost.usd)}{unknown}{about}"


def duration(ms: int | None) -> str:
    """A time span in at most eight characters."""
    if ms is None:
        return UNKNOWN
    if ms < 1000:
        return f"{ms} ms"
    if ms < 59_950:
        return f"{ms / 1000:.1f} s"
    minutes, seconds = divmod(round(ms / 1000), 60)
    if minutes < 60:
        return f"{minutes}m {seconds:02d}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes:02d}m"


def size(number: int) -> str:
    """Bytes."""
    if number < 1000:
        return f"{number} B"
    value = float(number)
    for unit in ("kB", "MB"):
        value /= 1000
        if value < 999.5:
            return f"{value:.1f} {unit}" if value < 99.95 else f"{value:.0f} {unit}"
    return f"{value / 1000:.1f} GB"
