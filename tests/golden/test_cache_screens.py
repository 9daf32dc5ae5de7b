"""The screens of `wiretape cache`, to the character. WIRETAPE_REWRITE_GOLDEN=1 writes them anew."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from tests.support.caching import PROMPT, asked, history, tokens
from tests.support.calls import system
from tests.support.golden import check_screen
from tests.support.views import shown

from wiretape.analyze.cache.diagnosis import diagnose
from wiretape.analyze.cache.report import CacheReport
from wiretape.runs.run import build_run
from wiretape.views.findings.cache import cache_call_view, cache_view

WIDTHS = pytest.mark.parametrize("width", [50, 80, 120])


def report() -> CacheReport:
    """Served, broken by a clock, expired, unsaid."""
    late = 9 * 60 * 1000
    served = tokens(history(1)) // 128 * 128
    moved = history(3, system(f"It is 15:05:30.\n{PROMPT}"))
    again = history(4, system(f"It is 15:23:47.\n{PROMPT}"))
    calls = [
        asked(1, history(1)),
        asked(2, history(2), cached=served),
        asked(3, moved, cached=None),
        asked(4, again, cached=0),
        asked(5, [*again, *history(9)[-2:]], cached=0, at=late, ended_at=late + 9),
    ]
    found = diagnose(build_run(calls))
    priced = [one.model_copy(update={"lost_usd": 0.0034}) if one.lost_tokens else one for one in found.calls]
    return found.model_copy(update={"calls": priced, "lost_usd": 0.0102, "prices": "a list"})


def check(name: str, screen: str, width: int) -> None:
    assert all(cell_len(line) <= width for line in screen.splitlines())
    assert not any(line.endswith(" ") for line in screen.splitlines())
    check_screen(f"{name}-{width}", screen)


@WIDTHS
def test_every_call_with_its_verdict(width: int) -> None:
    check("cache", shown(cache_view(report()), width), width)


@WIDTHS
def test_one_call_with_both_texts(width: int) -> None:
    check("cache-call", shown(cache_call_view(report().calls[3]), width), width)


def test_a_tape_without_calls() -> None:
    assert shown(cache_view(CacheReport(calls=[]))) == "No model calls on this tape.\n"
