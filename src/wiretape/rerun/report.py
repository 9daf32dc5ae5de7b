"""The report of a rerun, for the table and for `--json`."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict

from wiretape.compare.difference import ABSENT, Difference
from wiretape.compare.excerpt import excerpts, spelled
from wiretape.model.jsonvalue import Json
from wiretape.rerun.values import NO_RESULT, CallOutcome, StoppedThread


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RerunDifference(_Model):
    """A value that differs. `grown` is the built value; in a live rerun, the sent one."""

    where: str
    recorded: str
    grown: str
    recorded_excerpt: str
    grown_excerpt: str


class RerunGiven(_Model):
    """A decision of the program that no format implies."""

    kind: str
    where: str
    value: Json


class RerunTool(_Model):
    name: str
    arguments: str


class RerunCall(_Model):
    """One call. `call` is the recorded call's number, null for a request that only the live run made."""

    call: int | None
    thread: int
    agent: str
    format: str
    outcome: str
    tier: str
    note: str
    differences: tuple[RerunDifference, ...]
    given: tuple[RerunGiven, ...]
    asks: tuple[RerunTool, ...]
    said: str
    parts: str


class RerunStop(_Model):
    thread: int
    after: int | None
    why: str


class RerunReport(_Model):
    """The whole rerun. `live` is the endpoint, null if the tape answered; `gaps` states what the tape lacks."""

    tape: str
    live: str | None
    equal: bool
    calls: tuple[RerunCall, ...]
    stopped: tuple[RerunStop, ...]
    wrote: str | None = None
    gaps: tuple[str, ...] = ()

    @property
    def lacks_results(self) -> bool:
        """Whether a thread stopped because a tool's result is unknown."""
        return any(stop.why.startswith(NO_RESULT) for stop in self.stopped)


def build_rerun_report(
    tape: str,
    live: str | None,
    diverged: bool,
    outcomes: Iterable[CallOutcome],
    stopped: Iterable[StoppedThread],
    wrote: str | None = None,
    gaps: tuple[str, ...] = (),
) -> RerunReport:
    """Build the report: calls in the order of the tape, each new call after the call that it follows."""
    return RerunReport(
        tape=tape,
        live=live,
        equal=not diverged,
        calls=tuple(rerun_call(one) for one in _ordered(list(outcomes))),
        stopped=tuple(RerunStop(thread=one.thread, after=one.number, why=one.why) for one in stopped),
        wrote=wrote,
        gaps=gaps,
    )


def _ordered(outcomes: list[CallOutcome]) -> list[CallOutcome]:
    last: dict[int, int] = {}  # thread -> its last recorded call that was reached
    keyed: list[tuple[tuple[int, int], CallOutcome]] = []
    for position, one in enumerate(outcomes):
        if one.number is None:
            keyed.append(((last.get(one.thread, 0), position), one))
            continue
        if one.outcome not in ("not reached", "not sent"):
            last[one.thread] = one.number
        keyed.append(((one.number, -1), one))
    return [one for _, one in sorted(keyed, key=lambda pair: pair[0])]


def rerun_call(outcome: CallOutcome) -> RerunCall:
    """Return the report's entry for one call."""
    return RerunCall(
        call=outcome.number,
        thread=outcome.thread,
        agent=outcome.agent,
        format=outcome.format,
        outcome=outcome.outcome,
        tier=outcome.tier.word,
        note=outcome.note,
        differences=tuple(map(_difference, outcome.differences)),
        given=tuple(
            RerunGiven(kind=one.kind, where=one.where, value=None if one.value is ABSENT else one.value)
            for one in outcome.given
        ),
        asks=tuple(RerunTool(name=tool.name, arguments=tool.arguments) for tool in outcome.asks),
        said=outcome.said,
        parts=outcome.parts,
    )


def _difference(difference: Difference) -> RerunDifference:
    recorded, grown = excerpts(difference)
    return RerunDifference(
        where=difference.where,
        recorded=spelled(difference.recorded),
        grown=spelled(difference.live),
        recorded_excerpt=recorded,
        grown_excerpt=grown,
    )
