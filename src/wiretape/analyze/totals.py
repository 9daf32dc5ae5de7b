"""Sums over many runs: by tape, model, agent, tool and day. Each run is added and then released."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from pydantic import Field

from wiretape.analyze.cost import Price, pricing
from wiretape.analyze.report import CostSum, GroupReport, Report, UsageSum
from wiretape.analyze.stats import FIELDS, usage_sum
from wiretape.model.call import ModelCall
from wiretape.model.run import Run


class TapeTotals(GroupReport):
    """One tape's sums."""

    started: str
    turns: int


class ToolTotals(Report):
    """Outcome of the calls of one tool, over all tapes."""

    name: str
    calls: int = Field(description="tool calls that models requested")
    failed: int = Field(description="results marked as errors")
    unanswered: int = Field(description="tool calls without a result; tools that the provider runs are left out")
    tapes: int


class UnreadableTape(Report):
    """A tape that cannot be read, and why."""

    tape: str
    problem: str


class TotalsReport(Report):
    """The JSON of `wiretape stats --json` for several tapes."""

    tapes: int
    turns: int
    calls: int
    not_inferences: dict[str, int] = Field(default_factory=dict)
    tool_calls: int
    usage: UsageSum
    hit_rate: float | None = None
    cost: CostSum = Field(default_factory=CostSum)
    prices: str | None = None
    by_tape: list[TapeTotals]
    by_model: list[GroupReport]
    by_agent: list[GroupReport]
    by_tool: list[ToolTotals]
    by_day: list[GroupReport] = Field(description="by the UTC day on which a call started")
    unreadable: list[UnreadableTape] = Field(default_factory=list)


@dataclass(slots=True)
class _Tally:
    """Running sums of one group."""

    calls: int = 0
    tool_calls: int = 0
    sums: Counter[str] = field(default_factory=Counter)
    known: set[str] = field(default_factory=set)
    unknown: Counter[str] = field(default_factory=Counter)
    unknown_calls: int = 0
    hits: int = 0  # cached tokens of the calls that report both input and cached
    asked: int = 0  # input tokens of the same calls
    usd: Decimal | None = None
    unpriced: int = 0
    estimated: int = 0

    def add(self, calls: Sequence[ModelCall], price: Price) -> None:
        self.calls += len(calls)
        self.tool_calls += sum(len(call.tool_calls) for call in calls)
        self._add_usage(usage_sum(calls))
        for call in calls:
            usage = call.usage
            if usage is not None and usage.cached is not None and usage.input is not None:
                self.hits, self.asked = self.hits + usage.cached, self.asked + usage.input
            if usage is not None or call.kind == "inference":
                self._add_cost(call, price)

    def _add_usage(self, usage: UsageSum) -> None:
        self.unknown_calls += usage.unknown_calls
        self.unknown.update(usage.unknown)
        for name in FIELDS:
            value = getattr(usage, name)
            if value is not None:
                self.known.add(name)
                self.sums[name] += value

    def _add_cost(self, call: ModelCall, price: Price) -> None:
        cost = price(call)
        if cost is None:
            self.unpriced += 1
            return
        self.usd = (self.usd or Decimal()) + cost.usd
        self.estimated += bool(cost.assumed)

    @property
    def usage(self) -> UsageSum:
        sums = {name: self.sums[name] if name in self.known else None for name in FIELDS}
        return UsageSum(**sums, unknown_calls=self.unknown_calls, unknown=dict(self.unknown))

    @property
    def hit_rate(self) -> float | None:
        return self.hits / self.asked if self.asked else None

    @property
    def cost(self) -> CostSum:
        usd = float(self.usd) if self.usd is not None else None
        return CostSum(usd=usd, unknown_calls=self.unpriced, estimated_calls=self.estimated)

    def report(self, name: str) -> GroupReport:
        return GroupReport(
            name=name,
            calls=self.calls,
            tool_calls=self.tool_calls,
            usage=self.usage,
            hit_rate=self.hit_rate,
            cost=self.cost,
        )


class Totals:
    """Adds runs and reports their sums. Memory does not grow with the length of a run."""

    def __init__(self) -> None:
        self._all = _Tally()
        self._kinds: Counter[str] = Counter()
        self._tapes: list[TapeTotals] = []
        self._models: dict[str, _Tally] = {}
        self._agents: dict[str, _Tally] = {}
        self._days: dict[str, _Tally] = {}
        self._tools: dict[str, Counter[str]] = {}
        self._unreadable: list[UnreadableTape] = []

    def add(self, name: str, run: Run, started: datetime, price: Price | None = None) -> None:
        """Add the run of one tape. `price` is called once for each call."""
        priced = pricing(price)
        calls = [step.call for step in run.steps]
        tape = _Tally()
        for tally in (self._all, tape):
            tally.add(calls, priced)
        self._kinds.update(call.kind for call in calls if call.kind != "inference")
        _grouped(self._models, ((step.call.model or "unknown", step.call) for step in run.steps), priced)
        _grouped(self._agents, ((run.agents[step.agent].name, step.call) for step in run.steps), priced)
        _grouped(self._days, ((_day(started, step.call), step.call) for step in run.steps), priced)
        self._add_tools(run)
        sums = tape.report(name).model_dump()
        self._tapes.append(TapeTotals(**sums, started=started.isoformat(), turns=len(run.turns)))

    def _add_tools(self, run: Run) -> None:
        seen = set()
        for use in run.tool_uses:
            tool = self._tools.setdefault(use.call.name or "(no name)", Counter())
            tool["calls"] += 1
            tool["failed"] += use.result is not None and use.result.is_error is True
            tool["unanswered"] += use.result is None and use.call.kind != "server"
            tool["tapes"] += use.call.name not in seen
            seen.add(use.call.name)

    def could_not_read(self, name: str, problem: str) -> None:
        self._unreadable.append(UnreadableTape(tape=name, problem=problem))

    def report(self, prices: str | None = None) -> TotalsReport:
        """Return the sums so far. Groups are sorted by number of calls, the largest first; days by date."""
        return TotalsReport(
            tapes=len(self._tapes),
            turns=sum(tape.turns for tape in self._tapes),
            calls=self._all.calls,
            not_inferences=dict(self._kinds),
            tool_calls=self._all.tool_calls,
            usage=self._all.usage,
            hit_rate=self._all.hit_rate,
            cost=self._all.cost,
            prices=prices,
            by_tape=self._tapes,
            by_model=_most_first(self._models),
            by_agent=_most_first(self._agents),
            by_tool=[
                ToolTotals(name=name, **{key: counts[key] for key in ("calls", "failed", "unanswered", "tapes")})
                for name, counts in sorted(self._tools.items(), key=lambda tool: (-tool[1]["calls"], tool[0]))
            ],
            by_day=[self._days[day].report(day) for day in sorted(self._days)],
            unreadable=self._unreadable,
        )


def _grouped(tallies: dict[str, _Tally], named: Iterable[tuple[str, ModelCall]], price: Price) -> None:
    groups: dict[str, list[ModelCall]] = {}
    for name, call in named:
        groups.setdefault(name, []).append(call)
    for name, calls in groups.items():
        tallies.setdefault(name, _Tally()).add(calls, price)


def _most_first(tallies: dict[str, _Tally]) -> list[GroupReport]:
    return [tally.report(name) for name, tally in sorted(tallies.items(), key=lambda one: (-one[1].calls, one[0]))]


def _day(started: datetime, call: ModelCall) -> str:
    return (started + timedelta(milliseconds=call.at)).astimezone(UTC).date().isoformat()
