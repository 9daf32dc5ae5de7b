"""The JSON of `wiretape diff --json`. `a` and `b` are the two runs."""

from __future__ import annotations

from pydantic import Field

from wiretape.analyze.report import CostSum, Report, UsageSum


class RunDifference(Report):
    """A place where two calls differ. A value is null if that run has nothing there."""

    call_a: int | None
    call_b: int | None
    path: str
    a: str | None
    b: str | None
    what: str = Field(description="part of the call: system, tools, settings, history, answer, call, …")


class CallSide(Report):
    """A call that only one run has."""

    call: int
    agent: str
    why: str
    tool_calls: list[str]


class Sums(Report):
    """The sums of a turn in one run."""

    calls: int
    tool_calls: int
    agents: int
    usage: UsageSum
    hit_rate: float | None = None
    cost: CostSum = Field(default_factory=CostSum)
    wall_ms: int | None = None


class TurnPair(Report):
    """The same turn in both runs. One side is null if that run lacks the turn."""

    name: str = Field(description="`turn 1`, `side calls`, `outside of turns`")
    turn_a: int | None = None
    turn_b: int | None = None
    user: str
    a: Sums | None
    b: Sums | None
    pairs: list[tuple[int, int]] = Field(description="numbers of the paired calls")
    only_a: list[CallSide] = Field(default_factory=list)
    only_b: list[CallSide] = Field(default_factory=list)
    differences: list[RunDifference] = Field(default_factory=list)
    varied: list[RunDifference] = Field(default_factory=list, description="volatile values that differ: clocks, ids")


class DiffReport(Report):
    """The comparison of two runs."""

    same: bool = Field(description="only volatile values, tokens and times differ")
    first: RunDifference | None = Field(description="the first divergence")
    turns: list[TurnPair]
