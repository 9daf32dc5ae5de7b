"""A tape and its analysis as Python values: what `wiretape.open` returns.

The commands `stats`, `cache`, `lint`, `diff` and `debug` print what these methods return.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import PrivateAttr

from wiretape.adapters import arguments
from wiretape.analyze.report import AgentReport, CallReport, StatsReport, TurnReport
from wiretape.model.call import CallRequest, CallResponse
from wiretape.model.run import Run, Step
from wiretape.model.wording import plural
from wiretape.tape.reading import reader

if TYPE_CHECKING:
    from wiretape.analyze.cache.report import CacheReport
    from wiretape.analyze.cost import PriceList
    from wiretape.analyze.diff.report import DiffReport
    from wiretape.analyze.lint.base import LintFinding, LintRule, Subject
    from wiretape.debug.annotated_run import AnnotatedRun
    from wiretape.debug.annotations import Annotations, CacheVerdict, CallFinding


def open(path: str | Path, partial: bool = False) -> AnalyzedTape:
    """Read a tape, `.zst` too. Raises TapeError; UsageError if `path` is not a file name.

    `partial`: read the rest of a damaged tape, and list the damage in `damage`, instead of raising TapeDamaged.
    """
    return analyzed(reader.read_tape(arguments.tape_path(path, "wiretape.open({})"), partial))


def analyzed(tape: reader.Tape) -> AnalyzedTape:
    """A tape that was read already, with its analysis."""
    if isinstance(tape, AnalyzedTape):
        return tape
    return AnalyzedTape(**{field.name: getattr(tape, field.name) for field in fields(tape)})


class TapeCall(CallReport):
    """A model call: the members of a step in `wiretape stats --json`, its request and its response."""

    _step: Step = PrivateAttr()

    def __init__(self, report: CallReport, step: Step) -> None:
        super().__init__(**dict(report))
        self._step = step

    @property
    def number(self) -> int:
        """The call's number, from 1."""
        return self.call

    @property
    def turn(self) -> int | None:
        """The number of the call's turn, from 1. None: the call belongs to no turn."""
        return self._step.turn

    @property
    def request(self) -> CallRequest:
        """The decoded request: `messages`, `tools`, `settings`."""
        return self._step.call.request

    @property
    def response(self) -> CallResponse | None:
        """The decoded response. None: the provider sent no response."""
        return self._step.call.response

    @property
    def text(self) -> str | None:
        """The last text of the answer."""
        from wiretape.runs.user_text import answer_text

        return answer_text(self.response.messages) if self.response is not None else None


@dataclass(frozen=True, repr=False)
class AnalyzedTape(reader.Tape):
    """A tape whose analysis is computed when it is first used, and kept.

    Times are whole milliseconds since `header.started`; tokens are counts; costs are USD. None means unknown.
    """

    def __repr__(self) -> str:
        run, name = self.run, self.path if self.path is not None else "(no file)"
        counts = [(len(self.exchanges), "exchange"), (len(run.steps), "call"), (len(run.turns), "turn")]
        counts.append((len(run.agents), "agent"))
        listed = ", ".join(plural(count, noun) for count, noun in counts)
        return f"<Tape {name}: {listed}{'; incomplete' if self.incomplete else ''}>"

    @cached_property
    def run(self) -> Run:
        """The calls linked into threads, turns and agents."""
        from wiretape.runs.run import build_run
        from wiretape.wire.mcp.traffic import served_tool_calls
        from wiretape.wire.registry import decode

        calls = decode(self.exchanges)
        decoded = {call.exchange for call in calls}
        others = [exchange.number for exchange in self.exchanges if exchange.number not in decoded]
        return build_run(calls, others, served_tool_calls(self.exchanges))

    @cached_property
    def calls(self) -> list[TapeCall]:
        """Every model call, by number."""
        from wiretape.analyze.stats import call_reports

        reports = call_reports(self.run, self.prices)
        return [TapeCall(report, step) for report, step in zip(reports, self.run.steps, strict=True)]

    def call(self, number: int) -> TapeCall:
        """The call with a number. Raises IndexError if the tape has no such call."""
        found = next((call for call in self.calls if call.number == number), None)
        if found is None:
            raise IndexError(f"{self!r} has no call {number}")
        return found

    @property
    def turns(self) -> list[TurnReport]:
        """The turns, each with its sums and its calls (`steps`)."""
        return self.stats().turns

    @property
    def agents(self) -> list[AgentReport]:
        """The agents, each with its sums and the call that started it."""
        return self.stats().by_agent

    def stats(self) -> StatsReport:
        """What `wiretape stats --json` prints."""
        return self._stats

    def cache(self) -> CacheReport:
        """What `wiretape cache --json` prints: for each call, what the prompt cache served and why not more."""
        return self._cache

    def lint(
        self, select: Sequence[str] = (), ignore: Sequence[str] = (), redact: Sequence[str] = ()
    ) -> list[LintFinding]:
        """What `wiretape lint` finds. `redact`: additional patterns of secrets. Raises UsageError."""
        from wiretape.analyze.lint.rules import chosen

        return self.lint_with(chosen(select, ignore), redact)

    def lint_with(self, rules: Sequence[LintRule], redact: Sequence[str] = ()) -> list[LintFinding]:
        """What these rules find."""
        from wiretape.analyze.lint.base import Subject
        from wiretape.analyze.lint.rules import lint

        return lint(Subject(self.run, self.exchanges, redact, self.gaps), rules)

    def find(self, condition: str) -> list[TapeCall]:
        """The calls at which a breakpoint with this condition would stop: `input > 5000 and cached < 50%`.

        docs/debugger.md describes the language. Raises UsageError if the condition cannot be read.
        """
        from wiretape.debug.expression.expression import holds, known_from
        from wiretape.debug.expression.parsing import parse

        expression = parse(condition)
        phase = known_from(expression)
        stops = (stop for stop in self._annotated.timeline.stops if stop.phase == phase)
        found = {stop.call for stop in stops if holds(expression, self._annotated, stop)}
        return [call for call in self.calls if call.number in found]

    def diff(self, other: str | Path | reader.Tape, mask: Sequence[str] = ()) -> DiffReport:
        """What `wiretape diff --json` prints. `mask`: patterns of text that may differ. Raises TapeError."""
        from wiretape.analyze.diff.runs import compare_runs

        there = analyzed(other) if isinstance(other, reader.Tape) else open(other)
        return compare_runs(self.run, there.run, mask, self.prices, there.prices)

    def tool(self, name: str, **options: Any) -> Callable[..., Any]:
        """A stub that answers as the recorded tool did, by arguments. `returns`, `is_async`: see docs/tools.md."""
        from wiretape.adapters.inprocess.tools.stub import stub_of_tape

        return stub_of_tape(self, name, **options)

    @cached_property
    def prices(self) -> PriceList | None:
        """List prices at the time of the recording. None: the extra `prices` is not installed."""
        from wiretape.adapters.prices import price_list

        return price_list(self.header.started)

    @cached_property
    def _stats(self) -> StatsReport:
        from wiretape.analyze.stats import stats

        return stats(self.run, self.warnings, self.prices)

    @cached_property
    def _cache(self) -> CacheReport:
        from wiretape.analyze.cache.diagnosis import diagnose

        return diagnose(self.run, self.prices)

    @cached_property
    def _annotated(self) -> AnnotatedRun:
        from wiretape.debug.annotated_run import AnnotatedRun

        return AnnotatedRun(self.run, annotations_of(self))


class RunAnnotations:
    """What the analysis knows of a run, as the debugger and `find` use it. Each part is computed once."""

    def __init__(self, run: Run) -> None:
        self._run = run

    @cached_property
    def _subject(self) -> Subject:
        from wiretape.analyze.lint.base import Subject

        return Subject(self._run)

    def why(self, step: Step) -> str:
        """Why a call was made."""
        from wiretape.analyze.why import why

        return why(step, self._run)

    def findings(self) -> list[CallFinding]:
        """What lint finds in the run."""
        from wiretape.analyze.lint.rules import lint
        from wiretape.debug.annotations import CallFinding

        return [
            CallFinding(
                kind=found.name,
                call=found.call,
                text=f"{found.path}: {found.text}" if found.path is not None else found.text,
                severity=found.severity,
                id=found.rule,
                values=tuple(found.values.items()),
                fix=found.mend,
            )
            for found in lint(self._subject)
        ]

    def cache(self) -> dict[int, CacheVerdict]:
        """What the prompt cache did for each call, by number."""
        from wiretape.debug.annotations import CacheVerdict

        return {one.call: CacheVerdict(one.verdict, one.text) for one in self._subject.cache.calls}


def annotations_of(tape: AnalyzedTape, name: str = "the tape", **more: Any) -> Annotations:
    """Return the annotations of a tape for the debugger. `more`: further members of `Annotations`."""
    from wiretape.debug.annotations import Annotations

    known = RunAnnotations(tape.run)
    return Annotations(
        name=name,
        started=tape.header.started,
        exchanges={exchange.number: exchange for exchange in tape.exchanges},
        why=known.why,
        cache=known.cache,
        findings=known.findings,
        **more,
    )
