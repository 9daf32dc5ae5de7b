"""How exchanges of a tape are named in a row: by their calls' numbers, and those that are no calls by their own."""

from __future__ import annotations

from collections.abc import Sequence

from wiretape.matching.report import ReportedExchange

_MOST = 12


def named_calls(named: Sequence[ReportedExchange]) -> str:
    """`calls 1, 2, 3 and x7`; a long row is cut, and says so."""
    calls = [str(name.call) for name in named if name.call is not None]
    others = [f"x{name.exchange}" for name in named if name.call is None]
    shown = [("call " if len(calls) == 1 else "calls ") + ", ".join(_cut(calls))] if calls else []
    return " and ".join([*shown, *([", ".join(_cut(others))] if others else [])])


def _cut(names: list[str]) -> list[str]:
    return names if len(names) <= _MOST else [*names[:_MOST], f"… ({len(names)} in all)"]
