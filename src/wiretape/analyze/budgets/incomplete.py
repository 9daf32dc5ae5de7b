"""What a budget is worth on a tape that lacks something: nothing that is not seen counts as kept."""

from __future__ import annotations

from collections.abc import Sequence

from wiretape.analyze.budgets.report import Judgement

_AT_LEAST = ("max-", "no-lint-errors")  # the rest of a tape makes these worse only


def on_incomplete(judged: Sequence[Judgement], gaps: Sequence[str]) -> list[Judgement]:
    """Judgements of a tape that lacks something. What is too much already stays so; the rest cannot be judged."""
    if not gaps:
        return list(judged)
    first = _incomplete("whole tape", "; ".join(gaps))
    return [first, *(_unsure(one, "the tape is incomplete") for one in judged)]


def against_incomplete(judged: Sequence[Judgement], gaps: Sequence[str]) -> list[Judgement]:
    """Judgements against a baseline that lacks something: what is no worse than a part of it is no worse."""
    if not gaps:
        return list(judged)
    first = _incomplete("baseline: whole tape", "; ".join(gaps))
    unsure = [_unknown(one, "the baseline is incomplete") if one.outcome == "exceeded" else one for one in judged]
    return [first, *unsure]


def _incomplete(what: str, why: str) -> Judgement:
    return Judgement(budget=what, where="tape", limit="complete", actual="incomplete", outcome="unknown", detail=why)


def _unsure(one: Judgement, why: str) -> Judgement:
    more_is_worse = one.budget.startswith(_AT_LEAST)
    if one.outcome == "kept" and more_is_worse and not one.actual.startswith("at least"):
        return _unknown(one.model_copy(update={"actual": f"at least {one.actual}"}), why)
    return _unknown(one, why) if one.outcome == "kept" or (one.outcome == "exceeded" and not more_is_worse) else one


def _unknown(one: Judgement, why: str) -> Judgement:
    detail = f"{one.detail}; {why}" if one.detail else why
    return one.model_copy(update={"outcome": "unknown", "detail": detail})
