"""The printed shape of a comparison: what `wiretape diff --json` gives. `a` and `b` are the two runs."""

from __future__ import annotations

from pydantic import Field

from wiretape.analyze.report import CostSum, Report, UsageSum


class RunDifference(Report):
    """One place where two calls differ; a value is null where that run has nothing there."""

    call_a: int | None
    call_b: int | None
    path: str
    a: str | None
    b: str | None
    what: str = Field(description="what kind of place it is: system, tools, settings, history, answer, call, …")


class CallSide(Report):
    """A call of one run that the other has not."""

    call: int
    agent: str
    why: str
    tool_calls: list[str]


class Sums(Report):
    """What a turn took in one run."""

    calls: int
    tool_calls: int
    agents: int
    usage: UsageSum
    hit_rate: float | None = None
    cost: CostSum = Field(default_factory=CostSum)
    wall_ms: int | None = None


class TurnPair(Report):
    """A turn of each run that stand for the same. One side is null where the other has no such turn."""

    name: str = Field(description="`turn 1`, `side calls`, `outside of turns`")
    turn_a: int | None = None
    turn_b: int | None = None
    user: str
    a: Sums | None
    b: Sums | None
    pairs: list[tuple[int, int]] = Field(description="calls that stand for the same")
    only_a: list[CallSide] = Field(default_factory=list)
    only_b: list[CallSide] = Field(default_factory=list)
    differences: list[RunDifference] = Field(default_factory=list)
    varied: list[RunDifference] = Field(default_factory=list, description="values that change from run to run")


class DiffReport(Report):
    same: bool = Field(description="nothing differs but what changes from run to run; tokens and times do not count")
    first: RunDifference | None = Field(description="the first divergence")
    turns: list[TurnPair]
