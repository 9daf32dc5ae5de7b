"""Adds up tokens without inventing any: what the wire does not give is unknown, never 0."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wiretape.analyze.report import UsageSum
from wiretape.model.call import ModelCall, Usage

FIELDS = ("input", "cached", "cache_write", "output", "reasoning")


def usage_sum(calls: Iterable[ModelCall]) -> UsageSum:
    """Tokens of several calls. Calls that give no usage are counted, unless they are of a kind that costs none."""
    usages = [call.usage for call in calls if call.usage is not None or call.kind == "inference"]
    values = {field: [_value(usage, field) for usage in usages] for field in FIELDS}
    sums = {field: _sum(found) for field, found in values.items()}
    return UsageSum(
        **sums,
        unknown_calls=sum(_is_empty(usage) for usage in usages),
        unknown={field: found.count(None) for field, found in values.items() if None in found},
    )


def call_usage(call: ModelCall) -> UsageSum | None:
    """A single call's tokens; None when the wire gave none."""
    return None if _is_empty(call.usage) else usage_sum((call,))


def hit_rate(calls: Iterable[ModelCall]) -> float | None:
    """Cached / input, over the calls that give both; None when none does."""
    known = [
        (usage.cached, usage.input)
        for call in calls
        if (usage := call.usage) is not None and usage.cached is not None and usage.input is not None
    ]
    total = sum(tokens for _, tokens in known)
    return sum(cached for cached, _ in known) / total if total else None


def _value(usage: Usage | None, field: str) -> int | None:
    value: int | None = getattr(usage, field) if usage is not None else None
    return value


def _sum(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _is_empty(usage: Usage | None) -> bool:
    return all(_value(usage, field) is None for field in FIELDS)
