"""Law 2 for the analysis: lint, budgets, totals and the comparison accept any calls."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws.test_law_2_any_bytes import OBJECTS, URLS

from wiretape.analyze.budgets.baseline import against
from wiretape.analyze.budgets.judging import judge
from wiretape.analyze.budgets.report import Budgets
from wiretape.analyze.cost import pricing
from wiretape.analyze.diff.runs import compare_runs
from wiretape.analyze.lint.base import Subject
from wiretape.analyze.lint.rules import lint
from wiretape.analyze.totals import Totals
from wiretape.model.http import Ended, Exchange, Headers, JsonBody, Request, Response
from wiretape.runs.run import build_run
from wiretape.wire.registry import decode

PAIRS = st.lists(st.tuples(OBJECTS, OBJECTS), min_size=1, max_size=3)
BUDGETS = Budgets(1, 1, 1, 1, 1, 1, 0.1, 0.5, True)


def exchanges(url: str, pairs: list[tuple[Any, Any]], status: int) -> list[Exchange]:
    return [
        Exchange(
            number,
            number * 10,
            Request("POST", url, Headers(), JsonBody(asked)),
            Response(status, Headers(), number * 10 + 1, JsonBody(answered)),
            Ended.COMPLETE,
            number * 10 + 5,
        )
        for number, (asked, answered) in enumerate(pairs, 1)
    ]


@settings(max_examples=20)  # each is three calls or six
@given(URLS, PAIRS, PAIRS, st.sampled_from([200, 429]))
def test_any_calls_are_judged_and_compared(url: str, one: Any, other: Any, status: int) -> None:
    recorded, live = exchanges(url, one, status), exchanges(url, other, status)
    a, b = build_run(decode(recorded)), build_run(decode(live))
    for finding in lint(Subject(a, recorded)):
        finding.model_dump_json()
    assert compare_runs(a, a).same
    compare_runs(a, b).model_dump_json()
    price = pricing()
    assert len(judge(a, BUDGETS, price)) >= 6
    against(a, b, 0.1, price, price)
    totals = Totals()
    for run in (a, b):
        totals.add("a.tape", run, datetime(2026, 2, 28, tzinfo=UTC))
    totals.report().model_dump_json()
