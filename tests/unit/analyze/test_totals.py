from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from tests.support.calls import asks, assistant, make_call, result, user

from wiretape.analyze.cost import Cost
from wiretape.analyze.stats import stats
from wiretape.analyze.totals import Totals
from wiretape.model.call import ModelCall, Usage
from wiretape.model.run import Run
from wiretape.runs.run import build_run

HI = user("what is new?")
NOON = datetime(2026, 2, 28, 12, tzinfo=UTC)


def loop(model: str = "m", at: int = 0, failed: bool = False) -> Run:
    ask = assistant(asks("look", "{}", "1"), asks("read", '{"n": 1}', "2"))
    calls = [
        make_call(1, [HI], ask, model=model, at=at, usage=Usage(input=100, cached=60, output=10)),
        make_call(2, [HI, ask, result("x", "1")], "done", model=model, at=at + 100, usage=None),
    ]
    if failed:
        calls.append(make_call(3, [HI], status=500, model=model, at=at + 200))
    return build_run(calls)


def cent(call: ModelCall) -> Cost | None:
    return Cost(Decimal("0.01")) if call.usage is not None else None


def test_totals_are_the_sums_of_what_stats_says_of_each_tape() -> None:
    totals = Totals()
    runs = [loop(), loop("n"), loop("m", failed=True)]
    for number, run in enumerate(runs):
        totals.add(f"{number}.tape", run, NOON)
    report, single = totals.report(), [stats(run) for run in runs]
    assert report.calls == sum(one.calls for one in single) == 7
    assert report.tool_calls == sum(one.tool_calls for one in single)
    assert report.turns == sum(len(one.turns) for one in single)
    assert report.usage.input == 300
    assert report.usage.reasoning is None  # never given: unknown, not 0
    assert report.usage.unknown_calls == sum(one.usage.unknown_calls for one in single) == 4
    assert report.hit_rate == 0.6
    for row, one in zip(report.by_tape, single, strict=True):
        assert (row.calls, row.usage, row.hit_rate) == (one.calls, one.usage, one.hit_rate)


def test_groups_by_model_agent_tool_and_day() -> None:
    totals = Totals()
    late = 11 * 3_600_000 + 3_599_950  # ms: the second call starts after midnight
    totals.add("a.tape", loop("m", at=late), NOON)
    totals.add("b.tape", loop("n"), NOON)
    report = totals.report()
    assert [(one.name, one.calls, one.usage.input) for one in report.by_model] == [("m", 2, 100), ("n", 2, 100)]
    assert [(one.name, one.calls) for one in report.by_agent] == [("root", 4)]
    assert [(one.name, one.calls) for one in report.by_day] == [("2026-02-28", 3), ("2026-03-01", 1)]
    assert [(one.name, one.calls, one.unanswered, one.tapes) for one in report.by_tool] == [
        ("look", 2, 0, 2),
        ("read", 2, 2, 2),
    ]


def test_costs_are_added_as_decimals_and_what_has_no_price_is_counted() -> None:
    totals = Totals()
    for number in range(3):
        totals.add(f"{number}.tape", loop(), NOON, cent)
    cost = totals.report().cost
    assert (cost.usd, cost.unknown_calls) == (0.03, 3)
    assert Totals().report().cost.usd is None


def test_tapes_that_could_not_be_read_are_kept_by_name() -> None:
    totals = Totals()
    totals.could_not_read("broken.tape", "is not a tape")
    report = totals.report()
    assert (report.tapes, [(one.tape, one.problem) for one in report.unreadable]) == (
        0,
        [("broken.tape", "is not a tape")],
    )
