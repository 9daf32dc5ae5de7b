"""What a rerun came to, as a value: for the table, for `--json`, for tests."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict

from wiretape.compare.difference import ABSENT, Difference
from wiretape.compare.excerpt import excerpts, spelled
from wiretape.model.jsonvalue import Json
from wiretape.rerun.values import NOTHING_ANSWERS, Row, Stopped


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RerunDifference(_Model):
    """`grown`: what the format makes of the call before; live, what was sent. The excerpts show where they differ."""

    where: str
    recorded: str
    grown: str
    recorded_excerpt: str
    grown_excerpt: str


class RerunGiven(_Model):
    """What the program decided, and no format implies."""

    kind: str
    where: str
    value: Json


class RerunTool(_Model):
    name: str
    arguments: str


class RerunCall(_Model):
    """`call`: the recorded call's number; null for a request that only the live run made."""

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
    """`live`: where the requests went; null where the tape itself answered. `gaps`: what the tape lacks."""

    tape: str
    live: str | None
    equal: bool
    calls: tuple[RerunCall, ...]
    stopped: tuple[RerunStop, ...]
    wrote: str | None = None
    gaps: tuple[str, ...] = ()

    @property
    def lacks_results(self) -> bool:
        """Whether a run ended because nobody could say what a tool gives."""
        return any(stop.why.startswith(NOTHING_ANSWERS) for stop in self.stopped)


def build_rerun_report(
    tape: str,
    live: str | None,
    parted: bool,
    rows: Iterable[Row],
    stops: Iterable[Stopped],
    wrote: str | None = None,
    gaps: tuple[str, ...] = (),
) -> RerunReport:
    """The rows in the order of the tape, new calls after the one that they follow."""
    return RerunReport(
        tape=tape,
        live=live,
        equal=not parted,
        calls=tuple(rerun_call(row) for row in _ordered(list(rows))),
        stopped=tuple(RerunStop(thread=stop.thread, after=stop.number, why=stop.why) for stop in stops),
        wrote=wrote,
        gaps=gaps,
    )


def _ordered(rows: list[Row]) -> list[Row]:
    """Recorded calls by number; a new one stays behind the last recorded one of its thread."""
    place: dict[int, int] = {}
    keyed: list[tuple[tuple[int, int], Row]] = []
    for position, row in enumerate(rows):
        if row.number is not None:
            if row.outcome not in ("not reached", "not sent"):
                place[row.thread] = row.number
            keyed.append(((row.number, -1), row))
        else:
            keyed.append(((place.get(row.thread, 0), position), row))
    return [row for _, row in sorted(keyed, key=lambda one: one[0])]


def rerun_call(row: Row) -> RerunCall:
    return RerunCall(
        call=row.number,
        thread=row.thread,
        agent=row.agent,
        format=row.format,
        outcome=row.outcome,
        tier=row.tier.word,
        note=row.note,
        differences=tuple(_difference(apart) for apart in row.differences),
        given=tuple(
            RerunGiven(kind=one.kind, where=one.where, value=None if one.value is ABSENT else one.value)
            for one in row.given
        ),
        asks=tuple(RerunTool(name=tool.name, arguments=tool.arguments) for tool in row.asks),
        said=row.said,
        parts=row.parts,
    )


def _difference(apart: Difference) -> RerunDifference:
    recorded, grown = excerpts(apart)
    return RerunDifference(
        where=apart.where,
        recorded=spelled(apart.recorded),
        grown=spelled(apart.live),
        recorded_excerpt=recorded,
        grown_excerpt=grown,
    )
