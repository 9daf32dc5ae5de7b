"""Compares a run with an older one, turn by turn: numbers that got worse by more than a tolerance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from wiretape.analyze.budgets.amounts import Amount, HitRate, cost, hit_bounds, tokens
from wiretape.analyze.budgets.judging import NO_PRICES
from wiretape.analyze.budgets.report import Judgement, Outcome
from wiretape.analyze.cost import Price
from wiretape.analyze.diff.alignment import aligned_turns
from wiretape.compare.mask import Masker
from wiretape.model.call import ModelCall
from wiretape.model.run import Run


def against(
    old: Run,
    new: Run,
    tolerance: float,
    old_price: Price,
    new_price: Price,
    masks: Sequence[str] = (),
    has_prices: bool = True,
) -> list[Judgement]:
    """Compare two runs. Turns are paired by the user's message; a missing turn is worse, a new turn is skipped."""
    judged: list[Judgement] = []
    measure = _Measure(tolerance, old_price, new_price, has_prices)
    for before, after in aligned_turns(old, new, Masker(masks).without_secrets):
        if after is None and before is not None:
            text = f"the turn is gone: {before.user}"
            judged.append(_said("turns", f"turn {before.number}", "there", "gone", "exceeded", text))
        elif before is None and after is not None:
            text = f"not in the baseline: {after.user}"
            judged.append(_said("turns", f"turn {after.number}", "any", "new", "skipped", text))
        elif before is not None and after is not None:
            one, other = ([step.call for step in turn.steps] for turn in (before, after))
            judged += _compared(f"turn {after.number}", one, other, measure)
    one, other = ([step.call for step in run.side_calls] for run in (old, new))
    if one or other:
        judged += _compared("side calls", one, other, measure)
    return judged


@dataclass(frozen=True, slots=True)
class _Measure:
    """How two runs are compared. Each run has the prices of its own time."""

    tolerance: float
    old_price: Price
    new_price: Price
    has_prices: bool


def _compared(where: str, old: Sequence[ModelCall], new: Sequence[ModelCall], by: _Measure) -> Iterator[Judgement]:
    yield _more("calls", where, Amount(len(old)), Amount(len(new)), by.tolerance)
    asked = [Amount(sum(len(call.tool_calls) for call in calls)) for calls in (old, new)]
    yield _more("tool calls", where, asked[0], asked[1], by.tolerance)
    for field in ("input", "output"):
        yield _more(f"{field} tokens", where, tokens(old, field), tokens(new, field), by.tolerance)
    yield _costs(where, cost(old, by.old_price), cost(new, by.new_price), by)
    yield _hits(where, old, new, by.tolerance)


def _costs(where: str, old: Amount, new: Amount, by: _Measure) -> Judgement:
    judged = _more("cost", where, old, new, by.tolerance, lambda usd: f"${usd:.5f}")
    unpriced = not by.has_prices and bool(old.unknown or new.unknown)
    return judged.model_copy(update={"detail": NO_PRICES}) if unpriced else judged


def _more(
    what: str,
    where: str,
    old: Amount,
    new: Amount,
    tolerance: float,
    show: Callable[[float], str] = lambda number: f"{round(number):,}",
) -> Judgement:
    limit = old.known * (1 + tolerance) + 1e-9
    if old.unknown:
        text = "the baseline does not say"
        return _said(what, where, "unknown", _shown(new, show), "skipped", text)
    said = f"at most {show(old.known)}" + (f" + {tolerance:.0%}" if tolerance else "")
    detail = "not every call says" if new.unknown else None
    return _said(what, where, said, _shown(new, show), new.within(limit), detail)


def _shown(amount: Amount, show: Callable[[float], str]) -> str:
    if amount.unknown:
        return f"at least {show(amount.known)}" if amount.known else "unknown"
    return show(amount.known)


def _hits(where: str, old: Sequence[ModelCall], new: Sequence[ModelCall], tolerance: float) -> Judgement:
    """Compare hit rates. `tolerance` is the allowed drop: 0.1 is 10 percentage points."""
    before, after = hit_bounds(old), hit_bounds(new)
    if before.least is None or before.least != before.most:
        return _said("cache hit", where, "unknown", _rate(after), "skipped", "the baseline does not say")
    said = f"at least {before.least:.0%}" + (f" - {tolerance * 100:.0f} points" if tolerance else "")
    return _said("cache hit", where, said, _rate(after), after.reaches(before.least - tolerance - 1e-9), None)


def _rate(rate: HitRate) -> str:
    if rate.least is None or rate.most is None:
        return "unknown"
    return f"{rate.least:.0%}" if rate.least == rate.most else f"{rate.least:.0%} to {rate.most:.0%}"


def _said(what: str, where: str, limit: str, actual: str, outcome: Outcome, detail: str | None) -> Judgement:
    return Judgement(
        budget=f"baseline: {what}", where=where, limit=limit, actual=actual, outcome=outcome, detail=detail
    )
