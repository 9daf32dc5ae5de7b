from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pytest
from tests.support.calls import asks, assistant, make_call, result, user

from wiretape.analyze.budgets.amounts import count, share
from wiretape.analyze.budgets.baseline import against
from wiretape.analyze.budgets.judging import judge
from wiretape.analyze.budgets.report import Budgets, Judgement, TapeCheck, check_report
from wiretape.analyze.cost import Cost
from wiretape.analyze.lint.base import LintFinding
from wiretape.errors import UsageError
from wiretape.model.call import Message, ModelCall, Usage
from wiretape.runs.run import build_run

HI, MORE = user("what is new?"), user("and in Paris?")


def cents(call: ModelCall) -> Cost | None:
    return None if call.usage is None else Cost(Decimal("0.01"))


def priceless(call: ModelCall) -> Cost | None:
    return None


def loop(*usages: Usage | None) -> list[ModelCall]:
    """One turn: each call but the last asks for a tool."""
    history: list[Message] = [HI]
    calls = []
    for number, usage in enumerate(usages, 1):
        ask = assistant(asks("look", f'{{"n": {number}}}', f"c{number}")) if number < len(usages) else assistant("done")
        calls.append(make_call(number, list(history), ask, usage=usage))
        history += [ask, result("something", f"c{number}")]
    return calls


def judged(calls: Sequence[ModelCall], budgets: Budgets, errors: Sequence[LintFinding] = ()) -> list[Judgement]:
    return judge(build_run(calls), budgets, cents, errors)


def one(calls: Sequence[ModelCall], budgets: Budgets) -> tuple[str, str, str | None]:
    [found] = judged(calls, budgets)
    return found.outcome, found.actual, found.detail


FULL = Usage(input=100, cached=60, output=10)


def test_a_budget_at_its_limit_is_kept_and_above_it_exceeded() -> None:
    calls = loop(FULL, FULL)
    assert one(calls, Budgets(max_calls=2)) == ("kept", "2", None)
    assert one(calls, Budgets(max_calls=1)) == ("exceeded", "2", None)
    assert one(calls, Budgets(max_input=200)) == ("kept", "200", None)
    assert one(calls, Budgets(max_input=199)) == ("exceeded", "200", None)
    assert one(calls, Budgets(max_output=19)) == ("exceeded", "20", None)
    assert one(calls, Budgets(max_cost=0.02)) == ("kept", "$0.02", None)
    assert one(calls, Budgets(max_cost=0.01)) == ("exceeded", "$0.02", None)
    assert one(calls, Budgets(min_cache_hit=0.6)) == ("kept", "60%", None)
    assert one(calls, Budgets(min_cache_hit=0.61)) == ("exceeded", "60%", None)


def test_a_turn_is_the_users_and_each_is_judged_by_itself() -> None:
    first = loop(FULL, FULL, FULL)
    again = make_call(4, [*first[-1].request.messages, assistant("done"), MORE], "sunny")
    found = judged([*first, again], Budgets(max_calls_per_turn=2, max_tool_calls_per_turn=1, max_turn_ms=200))
    assert [(one.budget, one.where, one.actual, one.outcome) for one in found] == [
        ("max-calls-per-turn", "turn 1", "3", "exceeded"),
        ("max-calls-per-turn", "turn 2", "1", "kept"),
        ("max-tool-calls-per-turn", "turn 1", "2", "exceeded"),
        ("max-tool-calls-per-turn", "turn 2", "0", "kept"),
        ("max-turn-ms", "turn 1", "250", "exceeded"),
        ("max-turn-ms", "turn 2", "50", "kept"),
    ]


def test_what_is_unknown_is_never_kept() -> None:
    calls = loop(FULL, None)
    assert one(calls, Budgets(max_input=1000)) == ("unknown", "at least 100", "1 call does not say")
    assert one(calls, Budgets(max_cost=1)) == ("unknown", "at least $0.01", "1 call does not say")
    assert one(calls, Budgets(min_cache_hit=0.1))[0] == "unknown"
    assert one(loop(None, None), Budgets(max_input=1000)) == ("unknown", "unknown", "2 calls do not say")


def test_too_much_already_is_too_much_whatever_the_unknown_part_is() -> None:
    assert one(loop(FULL, None), Budgets(max_input=99))[0] == "exceeded"


def test_a_hit_rate_is_judged_by_its_bounds() -> None:
    calls = loop(Usage(input=100, cached=90), Usage(input=100))  # between 45% and 95%
    assert one(calls, Budgets(min_cache_hit=0.45))[:2] == ("kept", "45% to 95%")
    assert one(calls, Budgets(min_cache_hit=0.96))[0] == "exceeded"
    assert one(calls, Budgets(min_cache_hit=0.6)) == (
        "unknown",
        "45% to 95%",
        "not every call says how much of it was cached",
    )


def test_calls_that_were_refused_cost_no_tokens_but_count_as_calls() -> None:
    calls = [make_call(1, [HI], status=429), make_call(2, [HI], "hello", usage=FULL)]
    assert one(calls, Budgets(max_input=100)) == ("kept", "100", None)
    assert one(calls, Budgets(max_calls=1)) == ("exceeded", "2", None)


def test_an_empty_tape_keeps_no_budget() -> None:
    found = judged([], Budgets(max_calls=5, max_calls_per_turn=5, no_lint_errors=True))
    assert [(one.outcome, one.detail) for one in found] == [("unknown", "no model calls on the tape")] * 3


def test_a_tape_of_the_programs_own_tools_alone_is_known_to_have_asked_no_model() -> None:
    budgets = Budgets(max_calls=5, max_calls_per_turn=5, min_cache_hit=0.5, no_lint_errors=True)
    found = judge(build_run([], [1]), budgets, cents, tools_alone=True)
    said = "the program's own tools alone: no model was asked"
    assert [(one.outcome, one.actual, one.detail) for one in found] == [("kept", "no calls", said)] * 4


def test_no_price_list_is_said_so() -> None:
    [found] = judge(build_run(loop(FULL)), Budgets(max_cost=1), priceless, has_prices=False)
    assert (found.outcome, found.detail) == ("unknown", "no price list: install wiretape[prices]")


def test_lint_errors_are_named() -> None:
    error = LintFinding(rule="WT005", name="unknown-tool", severity="error", text="t", mend="m")
    [found] = judged(loop(FULL), Budgets(no_lint_errors=True), [error, error])
    assert (found.outcome, found.actual, found.detail) == ("exceeded", "2", "WT005 unknown-tool")
    assert judged(loop(FULL), Budgets(no_lint_errors=True))[0].outcome == "kept"


def compared(old: Sequence[ModelCall], new: Sequence[ModelCall], tolerance: float = 0.1) -> dict[str, tuple[str, str]]:
    found = against(build_run(old), build_run(new), tolerance, cents, cents)
    return {f"{one.budget} {one.where}": (one.outcome, one.actual) for one in found}


def test_a_run_is_no_worse_than_itself() -> None:
    assert {outcome for outcome, _ in compared(loop(FULL, FULL), loop(FULL, FULL), 0).values()} == {"kept"}


def test_what_became_worse_is_told_turn_by_turn() -> None:
    worse = Usage(input=120, cached=30, output=10)
    found = compared(loop(FULL, FULL), loop(FULL, FULL, worse))
    assert found["baseline: calls turn 1"] == ("exceeded", "3")
    assert found["baseline: tool calls turn 1"] == ("exceeded", "2")
    assert found["baseline: input tokens turn 1"] == ("exceeded", "320")
    assert found["baseline: output tokens turn 1"] == ("exceeded", "30")
    assert found["baseline: cost turn 1"] == ("exceeded", "$0.03000")
    assert found["baseline: cache hit turn 1"] == ("exceeded", "47%")


def test_the_tolerance_is_a_share_and_points_of_the_hit_rate() -> None:
    more = Usage(input=110, cached=55, output=11)
    assert compared(loop(FULL), loop(more), 0.1)["baseline: input tokens turn 1"] == ("kept", "110")
    assert compared(loop(FULL), loop(more), 0.09)["baseline: input tokens turn 1"] == ("exceeded", "110")
    assert compared(loop(FULL), loop(more), 0.1)["baseline: cache hit turn 1"] == ("kept", "50%")
    assert compared(loop(FULL), loop(more), 0.09)["baseline: cache hit turn 1"] == ("exceeded", "50%")


def test_what_only_the_new_run_does_not_say_cannot_be_judged() -> None:
    assert compared(loop(FULL), loop(None))["baseline: input tokens turn 1"] == ("unknown", "unknown")
    assert compared(loop(None), loop(FULL))["baseline: input tokens turn 1"] == ("skipped", "100")
    assert compared(loop(None), loop(None))["baseline: cache hit turn 1"] == ("skipped", "unknown")


def test_a_turn_that_is_gone_is_worse_and_a_new_one_is_not_compared() -> None:
    first = make_call(1, [HI], "nothing", usage=FULL)
    later = make_call(2, [HI, assistant("nothing"), MORE], "sunny", usage=FULL)
    assert compared([first, later], [first])["baseline: turns turn 2"] == ("exceeded", "gone")
    assert compared([first], [first, later])["baseline: turns turn 2"] == ("skipped", "new")


def test_turns_are_paired_though_a_clock_stands_in_what_the_user_said() -> None:
    old = make_call(1, [user("it is 2026-02-28 15:05:30, what is new?")], "nothing", usage=FULL)
    new = make_call(1, [user("it is 2026-03-01 09:00:00, what is new?")], "nothing", usage=FULL)
    assert "baseline: turns turn 1" not in compared([old], [new])


def test_a_report_passes_only_where_nothing_is_unknown_or_that_is_allowed() -> None:
    unknown = TapeCheck(tape="t", judgements=judged(loop(None), Budgets(max_input=5)))
    assert (check_report([unknown], False).passed, check_report([unknown], True).passed) == (False, True)
    assert not check_report([TapeCheck(tape="t", problem="no such file")], True).passed


@pytest.mark.parametrize(
    ("text", "number"), [("50k", 50_000), ("1.5M", 1_500_000), (7, 7), ("50_000", 50_000), ("0", 0)]
)
def test_counts_are_read_as_people_write_them(text: str | int, number: int) -> None:
    assert count(text, "max-input") == number


@pytest.mark.parametrize("text", ["", "-1", "many", "0.5", "1.0001k", "5 000"])
def test_what_is_no_count_is_told(text: str) -> None:
    with pytest.raises(UsageError, match=r"max-input is .*: use a whole number, such as 50000 or 50k"):
        count(text, "max-input")


def test_shares_are_read_as_numbers_and_percentages() -> None:
    assert (share("0.6", "x"), share("60%", "x"), share(1, "x")) == (0.6, 0.6, 1.0)
    for wrong in ("60", "1.2", "-0.1", "most", "nan"):
        with pytest.raises(UsageError, match="use a share between 0 and 1"):
            share(wrong, "min-cache-hit")
