"""The report of a replay session: for the summary, for `--report FILE`, for tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from pydantic import BaseModel, ConfigDict

from wiretape.compare.excerpt import excerpts, spelled
from wiretape.matching.faults.apply import Fault
from wiretape.matching.ledger import Drift, Ledger
from wiretape.matching.values import Answer, Injected, Miss, Outcome, Reference, Stray


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ReportedExchange(_Model):
    """A recorded exchange. `call`: its call number, if it is a model call."""

    tape: str
    exchange: int
    call: int | None
    what: str

    def __str__(self) -> str:
        return f"call {self.call}" if self.call is not None else f"x{self.exchange}"


class PlayedAnswer(_Model):
    request: int  # the live request's number
    answer: ReportedExchange
    tier: str
    repeated: bool


class ReportedDrift(_Model):
    """A path at which live requests differed from recorded ones, with the first values there.

    `minor`: only an id, a spelling or a volatile setting differs. The excerpts show both values around the difference.
    """

    tier: str
    where: str
    minor: bool
    recorded: str
    live: str
    recorded_excerpt: str
    live_excerpt: str
    calls: tuple[ReportedExchange, ...]


class ReportedDifference(_Model):
    where: str
    recorded: str
    live: str


class ReportedMiss(_Model):
    """A miss. `mend`: the command at the end of `message`. `times`: how often a client retried a refused connection."""

    request: int
    what: str
    reason: str
    message: str
    nearest: ReportedExchange | None
    differences: tuple[ReportedDifference, ...]
    mend: str = ""
    times: int = 1


class ReportedStray(_Model):
    what: str
    note: str
    times: int


class ReportedFault(_Model):
    """A fault that was injected into an attempt. `broke`: the recorded answer was left for the next attempt."""

    request: int
    fault: str  # as given, such as "429@3"
    answer: ReportedExchange
    broke: bool


class ReplayReport(_Model):
    """What a session played, and what differed. `left_over`: unplayed answers; `sockets`: unopened WebSockets.

    `injected`: faults that were injected; `not_injected`: faults without an attempt.
    `straight`: connections of a sealed program that ignored the proxy variables and were intercepted, by `host:port`.
    """

    tapes: str
    played: tuple[PlayedAnswer, ...]
    drifted: tuple[ReportedDrift, ...]
    missed: tuple[ReportedMiss, ...]
    strayed: tuple[ReportedStray, ...]
    left_over: tuple[ReportedExchange, ...]
    passed: dict[str, int]
    sockets: int = 0
    injected: tuple[ReportedFault, ...] = ()
    not_injected: tuple[str, ...] = ()
    straight: dict[str, int] = {}


def empty_report(tapes: str) -> ReplayReport:
    """The report of a session that played nothing."""
    return ReplayReport(tapes=tapes, played=(), drifted=(), missed=(), strayed=(), left_over=(), passed={})


def build_report(
    tapes: str,
    ledger: Ledger,
    left_over: Sequence[Reference],
    sockets: int,
    not_injected: Sequence[Fault] = (),
) -> ReplayReport:
    """The report of a session. `sockets`: how many recorded WebSockets were not opened."""
    outcomes = ledger.outcomes
    return ReplayReport(
        tapes=tapes,
        played=tuple(_played(outcome) for outcome in outcomes if isinstance(outcome, Answer)),
        drifted=tuple(_drifted(drift) for drift in ledger.drifts),
        missed=_misses(outcome for outcome in outcomes if isinstance(outcome, Miss)),
        strayed=_strayed(outcome for outcome in outcomes if isinstance(outcome, Stray)),
        left_over=tuple(_named(reference) for reference in left_over),
        passed=dict(ledger.passed),
        sockets=sockets,
        injected=tuple(mishap for outcome in outcomes for mishap in _mishaps(outcome)),
        not_injected=tuple(fault.spec for fault in not_injected),
    )


def _named(reference: Reference) -> ReportedExchange:
    return ReportedExchange(tape=reference.tape, exchange=reference.exchange, call=reference.call, what=reference.what)


def _played(answer: Answer) -> PlayedAnswer:
    return PlayedAnswer(
        request=answer.number, answer=_named(answer.reference), tier=answer.tier.word, repeated=answer.repeated
    )


def _mishaps(outcome: Outcome) -> list[ReportedFault]:
    match outcome:
        case Injected(fault=fault):
            faults: Sequence[Fault] = (fault,)
        case Answer(faults=faults):
            pass
        case _:
            return []
    named = _named(outcome.reference)
    broke = isinstance(outcome, Injected)
    return [ReportedFault(request=outcome.number, fault=f.spec, answer=named, broke=broke) for f in faults]


def _drifted(drift: Drift) -> ReportedDrift:
    recorded, live = excerpts(drift.first)
    return ReportedDrift(
        tier=drift.tier.word,
        where=drift.where,
        minor=drift.minor,
        recorded=spelled(drift.first.recorded),
        live=spelled(drift.first.live),
        recorded_excerpt=recorded,
        live_excerpt=live,
        calls=tuple(_named(reference) for reference in drift.calls),
    )


def _misses(misses: Iterable[Miss]) -> tuple[ReportedMiss, ...]:
    """All misses; those of connections that could not be opened once for each host."""
    kept: list[Miss] = []
    times = Counter[str]()
    for miss in misses:
        if miss.reason == "not opened":
            times[miss.what] += 1
        if times[miss.what] < 2:
            kept.append(miss)
    return tuple(_missed(miss, times[miss.what] or 1) for miss in kept)


def _missed(miss: Miss, times: int) -> ReportedMiss:
    return ReportedMiss(
        request=miss.number,
        what=miss.what,
        reason=miss.reason,
        message=miss.message,
        nearest=_named(miss.nearest) if miss.nearest is not None else None,
        differences=tuple(
            ReportedDifference(where=apart.where, recorded=spelled(apart.recorded), live=spelled(apart.live))
            for apart in miss.differences
        ),
        mend=miss.mend,
        times=times,
    )


def _strayed(strays: Iterable[Stray]) -> tuple[ReportedStray, ...]:
    times: dict[tuple[str, str], int] = {}
    for stray in strays:
        times[stray.what, stray.note] = times.get((stray.what, stray.note), 0) + 1
    return tuple(ReportedStray(what=what, note=note, times=count) for (what, note), count in times.items())
