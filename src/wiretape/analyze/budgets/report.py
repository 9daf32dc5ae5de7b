"""The budgets of a run, and the JSON of `wiretape check --json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pydantic import Field

from wiretape.analyze.lint.base import LintFinding
from wiretape.analyze.report import Report

# unknown: the numbers are not known, which fails unless --allow-unknown is given; skipped: nothing to compare with
Outcome: TypeAlias = Literal["kept", "exceeded", "unknown", "skipped"]


@dataclass(frozen=True, slots=True)
class Budgets:
    """Limits; None: no limit. A limit `per_turn` applies to each turn, the others to the whole tape."""

    max_calls: int | None = None
    max_calls_per_turn: int | None = None
    max_tool_calls_per_turn: int | None = None
    max_turn_ms: int | None = None
    max_input: int | None = None
    max_output: int | None = None
    max_cost: float | None = None
    min_cache_hit: float | None = None
    no_lint_errors: bool = False


class Judgement(Report):
    """The result of one budget for one turn or tape."""

    budget: str = Field(description="the option's name, or `baseline: …`")
    where: str = Field(description="`tape`, `turn 2`, `side calls`")
    limit: str
    actual: str
    outcome: Outcome
    detail: str | None = None


class TapeCheck(Report):
    """The judgements of one tape. `problem`: why it could not be read."""

    tape: str
    judgements: list[Judgement] = Field(default_factory=list)
    lint: list[LintFinding] = Field(default_factory=list, description="lint errors, if no-lint-errors is set")
    problem: str | None = None


class CheckReport(Report):
    """The judgements of all tapes."""

    tapes: list[TapeCheck]
    passed: bool
    exceeded: int
    unknown: int
    skipped: int
    unreadable: int
    allow_unknown: bool = False


def check_report(tapes: Sequence[TapeCheck], allow_unknown: bool) -> CheckReport:
    outcomes = [one.outcome for tape in tapes for one in tape.judgements]
    exceeded, unknown = outcomes.count("exceeded"), outcomes.count("unknown")
    unreadable = sum(tape.problem is not None for tape in tapes)
    passed = not exceeded and not unreadable and (allow_unknown or not unknown)
    return CheckReport(
        tapes=list(tapes),
        passed=passed,
        exceeded=exceeded,
        unknown=unknown,
        skipped=outcomes.count("skipped"),
        unreadable=unreadable,
        allow_unknown=allow_unknown,
    )
