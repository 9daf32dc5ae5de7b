"""Compares a run with its budgets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from wiretape.analyze.budgets.amounts import Amount, HitRate, cost, hit_bounds, tokens
from wiretape.analyze.budgets.report import Budgets, Judgement, Outcome
from wiretape.analyze.cost import Price
from wiretape.analyze.lint.base import LintFinding
from wiretape.analyze.stats import wall_ms
from wiretape.model.call import ModelCall
from wiretape.model.run import Run, Turn

NO_PRICES = "no price list: install wiretape[prices]"


def judge(
    run: Run,
    budgets: Budgets,
    price: Price,
    errors: Sequence[LintFinding] = (),
    has_prices: bool = True,
    tools_alone: bool = False,
) -> list[Judgement]:
    """Judge each budget that is set. `errors`: the lint errors of the run.

    `tools_alone`: the tape has only calls of the program's own tools, so the number of model calls is known to be 0.
    """
    calls = [step.call for step in run.steps]
    judged: list[Judgement] = []
    if budgets.max_calls is not None:
        judged.append(_most("max-calls", "tape", Amount(len(calls)), budgets.max_calls))
    if budgets.max_calls_per_turn is not None:
        judged += _turns(run, "max-calls-per-turn", budgets.max_calls_per_turn, _calls)
    if budgets.max_tool_calls_per_turn is not None:
        judged += _turns(run, "max-tool-calls-per-turn", budgets.max_tool_calls_per_turn, _tool_calls)
    if budgets.max_turn_ms is not None:
        judged += _turns(run, "max-turn-ms", budgets.max_turn_ms, _time)
    if budgets.max_input is not None:
        judged.append(_most("max-input", "tape", tokens(calls, "input"), budgets.max_input))
    if budgets.max_output is not None:
        judged.append(_most("max-output", "tape", tokens(calls, "output"), budgets.max_output))
    if budgets.max_cost is not None:
        judged.append(_cost(calls, budgets.max_cost, price, has_prices))
    if budgets.min_cache_hit is not None:
        judged.append(_hits(hit_bounds(calls), budgets.min_cache_hit))
    if budgets.no_lint_errors:
        judged.append(_lint(errors))
    if calls:
        return judged
    if tools_alone:
        return [_kept(one, "the program's own tools alone: no model was asked") for one in judged]
    return [_unknown(one, "no model calls on the tape") for one in judged]


def _most(
    budget: str, where: str, amount: Amount, limit: float, show: Callable[[float], str] | None = None
) -> Judgement:
    show = show or _number
    outcome = amount.within(limit)
    actual = show(amount.known) if not amount.unknown else f"at least {show(amount.known)}"
    if amount.unknown and not amount.known:
        actual = "unknown"
    said = []
    if amount.unknown:
        said.append(f"{_calls_that(amount.unknown)} not say")
    if amount.estimated:
        said.append(f"estimated for {amount.estimated} of the calls")
    detail = "; ".join(said) or None
    return Judgement(
        budget=budget, where=where, limit=f"at most {show(limit)}", actual=actual, outcome=outcome, detail=detail
    )


def _calls_that(number: int) -> str:
    return "1 call does" if number == 1 else f"{number} calls do"


def _turns(run: Run, budget: str, limit: int, amount: Callable[[Turn], Amount]) -> Iterator[Judgement]:
    if not run.turns:
        text = "no user turn on the tape"
        yield Judgement(
            budget=budget, where="tape", limit=f"at most {limit:,}", actual="unknown", outcome="unknown", detail=text
        )
    for turn in run.turns:
        yield _most(budget, f"turn {turn.number}", amount(turn), limit)


def _calls(turn: Turn) -> Amount:
    return Amount(len(turn.steps))


def _tool_calls(turn: Turn) -> Amount:
    return Amount(sum(len(step.call.tool_calls) for step in turn.steps))


def _time(turn: Turn) -> Amount:
    """The duration of a turn in milliseconds."""
    took = wall_ms([step.call for step in turn.steps])
    if took is not None:
        return Amount(took)
    return Amount(0, sum(step.call.ended_at is None for step in turn.steps))


def _cost(calls: Sequence[ModelCall], limit: float, price: Price, has_prices: bool) -> Judgement:
    judged = _most("max-cost", "tape", cost(calls, price), limit, _dollars)
    if judged.outcome == "unknown" and not has_prices:
        return judged.model_copy(update={"detail": NO_PRICES})
    return judged


def _hits(rate: HitRate, limit: float) -> Judgement:
    detail = None
    if rate.least is None or rate.most is None:
        actual, detail = "unknown", "not every call says how much its input was"
    elif rate.least == rate.most:
        actual = _percent(rate.least)
    else:
        actual = f"{_percent(rate.least)} to {_percent(rate.most)}"
        detail = "not every call says how much of it was cached"
    return Judgement(
        budget="min-cache-hit",
        where="tape",
        limit=f"at least {_percent(limit)}",
        actual=actual,
        outcome=rate.reaches(limit),
        detail=detail,
    )


def _lint(errors: Sequence[LintFinding]) -> Judgement:
    outcome: Outcome = "exceeded" if errors else "kept"
    detail = ", ".join(dict.fromkeys(f"{error.rule} {error.name}" for error in errors)) or None
    return Judgement(
        budget="no-lint-errors", where="tape", limit="none", actual=f"{len(errors)}", outcome=outcome, detail=detail
    )


def _unknown(judged: Judgement, why: str) -> Judgement:
    return judged.model_copy(update={"outcome": "unknown", "actual": "unknown", "detail": why})


def _kept(judged: Judgement, why: str) -> Judgement:
    return judged.model_copy(update={"outcome": "kept", "actual": "no calls", "detail": why})


def _number(value: float) -> str:
    return f"{round(value):,}"


def _dollars(value: float) -> str:
    return f"${value:.4f}".rstrip("0").rstrip(".") if value else "$0"


def _percent(value: float) -> str:
    return f"{value * 100:.1f}".removesuffix(".0") + "%"


# -- incomplete tapes --------------------------------------------------------------------------------------------------

_ONLY_GROWS = ("max-", "no-lint-errors")  # budgets whose number can only grow with the missing part of a tape


def on_incomplete(judged: Sequence[Judgement], gaps: Sequence[str]) -> list[Judgement]:
    """Adjust the judgements of an incomplete tape: an exceeded limit stays exceeded, the rest becomes unknown."""
    if not gaps:
        return list(judged)
    first = _incomplete("whole tape", "; ".join(gaps))
    return [first, *(_unsure(one, "the tape is incomplete") for one in judged)]


def against_incomplete(judged: Sequence[Judgement], gaps: Sequence[str]) -> list[Judgement]:
    """Adjust the judgements against an incomplete baseline: what exceeds it becomes unknown."""
    if not gaps:
        return list(judged)
    first = _incomplete("baseline: whole tape", "; ".join(gaps))
    unsure = [_made_unknown(one, "the baseline is incomplete") if one.outcome == "exceeded" else one for one in judged]
    return [first, *unsure]


def _incomplete(what: str, why: str) -> Judgement:
    return Judgement(budget=what, where="tape", limit="complete", actual="incomplete", outcome="unknown", detail=why)


def _unsure(one: Judgement, why: str) -> Judgement:
    more_is_worse = one.budget.startswith(_ONLY_GROWS)
    if one.outcome == "kept" and more_is_worse and not one.actual.startswith("at least"):
        return _made_unknown(one.model_copy(update={"actual": f"at least {one.actual}"}), why)
    uncertain = one.outcome == "kept" or (one.outcome == "exceeded" and not more_is_worse)
    return _made_unknown(one, why) if uncertain else one


def _made_unknown(one: Judgement, why: str) -> Judgement:
    detail = f"{one.detail}; {why}" if one.detail else why
    return one.model_copy(update={"outcome": "unknown", "detail": detail})
