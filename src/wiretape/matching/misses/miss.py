"""What a miss says: which recorded call came nearest, where the live request leaves it, and what to do about it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, islice
from operator import not_

import orjson

from wiretape.compare.canonical import same
from wiretape.compare.difference import ABSENT, Difference, differences, differences_of_queries
from wiretape.compare.excerpt import LIVE, RECORDED, excerpts
from wiretape.compare.mask import Masker
from wiretape.compare.normalize import counts, loose
from wiretape.matching.lookup.index import CallIndex, LookupKey, Probe
from wiretape.matching.misses.nearest import differences_of_bodies
from wiretape.matching.recorded import RecordedExchange, ReplaySource
from wiretape.matching.values import Miss, MissReason
from wiretape.model.http import Headers
from wiretape.model.jsonvalue import Json
from wiretape.model.run import Run

_SHOWN = 3  # differences written out; the rest are counted
_RANKED = 500  # candidates of which the likeliest are looked for
_LOOKED_AT = 50  # candidates whose difference is taken in full
_COMPARED = 1000  # messages, of all candidates together, after which no further candidate is compared


@dataclass(frozen=True, slots=True)
class MissFix:
    """What to do about a miss: a line of its message, and the command that the line ends in, if it is one to copy."""

    line: str
    command: str = ""


@dataclass(frozen=True, slots=True)
class Nearest:
    """The recorded call that a missed request is most like, and what sets them apart."""

    recorded: RecordedExchange
    differences: tuple[Difference, ...]
    alike: bool  # they begin with the same message, or share one further on: only a part of it changed


def nearest_call(probe: Probe, place: LookupKey, index: CallIndex, recording: ReplaySource) -> Nearest | None:
    """None where no call of this format was recorded at all. Calls of the same path go first."""
    if place.way is None or probe.format is None:
        return None
    recorded, played = recording.exchanges, recording.played
    name = probe.format.name
    # Where not even the first message was recorded: agents that share their prompt are told apart by what follows.
    alike = index.nearest(place.way) if place.way.depth else recording.groups.get((name, probe.address.tail))
    orders = _candidates(alike or recording.groups.get(name, ()), played)
    if not orders:
        return None
    length = len(place.way.items)

    def rank(order: int) -> tuple[bool, int, int]:
        call = index.length(order)
        return bool(played[order]), abs(call - length), order

    found, compared = [], 0
    for order in sorted(orders, key=rank)[:_LOOKED_AT]:
        apart = tuple(significant(recorded[order], probe, recording.masker))
        found.append((bool(played[order]), len(apart), order, apart))
        compared += length + index.length(order)
        # Where they begin alike, the first in rank is what the live call stands for.
        if place.way.depth or compared > _COMPARED:
            break
    *_, order, apart = min(found, key=lambda item: item[:3])
    return Nearest(recorded[order], apart, alike=place.way.depth > 0 or _shares_a_message(apart, probe, length))


def nearest_at_address(probe: Probe, recording: ReplaySource) -> Nearest | None:
    """The recorded request to the same address that one of no known format is most like; None where there is none."""
    where, played = probe.address, recording.played
    found = []
    for order in _candidates(recording.groups.get((where.method, where.path, where.host), ()), played)[:_LOOKED_AT]:
        one = recording.exchanges[order]
        apart = [
            *differences_of_queries(one.probe.address.query, where.query),
            *differences(one.probe.value, probe.value),
        ]
        firm = [difference for difference in apart if not is_masked(difference, recording.masker)]
        found.append(Nearest(one, tuple(firm or apart), alike=True))
    return min(found, key=lambda one: (bool(played[one.recorded.order]), len(one.differences)), default=None)


def _shares_a_message(apart: Sequence[Difference], probe: Probe, length: int) -> bool:
    call = probe.decoded
    if call is None:
        return False
    places = [call.path(number) for number in range(length)]
    touched = {place for place in places for difference in apart if _within(difference.where, place)}
    return len(touched) < length


def _within(where: str, place: str) -> bool:
    return where.startswith(place) and where[len(place) : len(place) + 1] in ("", ".", "[")


def _candidates(orders: Sequence[int], played: bytearray) -> list[int]:
    """Those that were not played, or all if all were. Of very many, the first: a miss must not cost a whole tape."""
    waiting = compress(orders, map(not_, map(played.__getitem__, orders)))
    return list(islice(waiting, _RANKED)) or list(orders[:_RANKED])


def significant(recorded: RecordedExchange, probe: Probe, masker: Masker) -> list[Difference]:
    """The differences that made it a miss, what was asked for first; all of them if none stands out."""
    assert probe.format is not None
    asked = list(_asked(recorded.probe, probe))
    every = list(differences_of_bodies(recorded.probe, probe))
    chosen = [apart for apart in asked if not _equal(masker.value(apart.recorded), masker.value(apart.live))]
    chosen += [apart for apart in every if _counted(apart, probe) and not is_masked(apart, masker)]
    return chosen or [*asked, *every]


def _asked(recorded: Probe, live: Probe) -> Iterator[Difference]:
    """Differences of method, path and query. What stands before a path's last part is a gateway's business."""
    one, other = recorded.address, live.address
    if one.method != other.method:
        yield Difference("method", one.method, other.method)
    if one.path != other.path and (one.tail != other.tail or _model(recorded) != _model(live)):
        yield Difference("path", one.path, other.path)
    yield from differences_of_queries(one.query, other.query)


def _model(probe: Probe) -> str | None:
    return probe.decoded.model if probe.decoded is not None else None


def is_minor(apart: Difference, probe: Probe) -> bool:
    """Whether only spelling, an id or something volatile differs: what tier normalized does not look at."""
    return not _counted(apart, probe) or _equal(loose(apart.recorded), loose(apart.live))


def _counted(apart: Difference, probe: Probe) -> bool:
    return probe.format is None or counts(apart.where, probe.format.volatile)


def is_masked(apart: Difference, masker: Masker) -> bool:
    """Whether only what changes from run to run differs: what tier masked does not look at."""
    one, other = apart.recorded, apart.live
    if one is ABSENT or other is ABSENT:
        return one is other
    if isinstance(one, str) and isinstance(other, str):
        return masker.remembered((one, other), lambda: _equal(masker.value(loose(one)), masker.value(loose(other))))
    return _equal(masker.value(loose(one)), masker.value(loose(other)))


def _equal(recorded: Json, live: Json) -> bool:
    try:
        return bool(recorded == live)
    except RecursionError:  # Python before 3.12 counts comparisons of nested values, too
        return same(recorded, live)


def miss(
    number: int,
    probe: Probe,
    reason: MissReason,
    nearest: Nearest | None,
    tapes: str,
    label: Callable[[RecordedExchange], str],
    note: str,
    mend: MissFix,
) -> Miss:
    """The whole answer to a request that nothing answers, in the provider's own error shape."""
    what = probe.address.what
    named = label(nearest.recorded) if nearest is not None and reason != "never recorded" else ""
    lines = [f"no call on {tapes} answers {what}{f' ({named})' if named else ''}"]
    lines += _story(reason, nearest, note)
    lines.append(mend.line)
    message = "\n".join(lines)
    headers, body = provider_error(probe, 400, message, "wiretape_miss")
    return Miss(
        number=number,
        what=what,
        reason=reason,
        message=message,
        nearest=nearest.recorded.reference if nearest is not None else None,
        differences=nearest.differences if nearest is not None and reason == "diverged" else (),
        headers=Headers([*headers.pairs(), ("x-should-retry", "false")]),
        body=body,
        mend=mend.command,
    )


def provider_error(probe: Probe, status: int, message: str, code: str) -> tuple[Headers, bytes]:
    """An error in the shape of who was asked."""
    if probe.format is not None:
        return probe.format.error(status, message, code)
    body = orjson.dumps({"error": {"message": message, "type": "invalid_request_error", "code": code}})
    return Headers([("content-type", "application/json")]), body


def fault(number: int, what: str, error: Exception) -> Miss:
    """wiretape itself failed on a request."""
    message = (
        f"wiretape failed on {what}: {type(error).__name__}: {error}\n"
        "  this is a fault of wiretape, not of the program: please report it, with the tape if you can share it"
    )
    body = orjson.dumps({"error": {"message": message, "type": "invalid_request_error", "code": "wiretape_fault"}})
    headers = Headers([("content-type", "application/json"), ("x-should-retry", "false")])
    return Miss(number, what, "fault", message, headers=headers, body=body)


def thread_labels(run: Run) -> dict[int, str]:
    """Exchange number -> `call 3 of thread "calendar"`."""
    names = {agent.number: agent.name for agent in run.agents}
    exchanges = {step.call.number: step.call.exchange for step in run.steps}
    return {
        exchanges[number]: f'call {position} of thread "{names[thread.agent]}"'
        for thread in run.threads
        for position, number in enumerate(thread.calls, 1)
        if number in exchanges and thread.agent in names
    }


def _story(reason: MissReason, nearest: Nearest | None, note: str) -> list[str]:
    if reason == "not playable":
        return [f"  {note}"]
    if nearest is None:
        return ["  it was never recorded: the tape has no call like it"]
    if reason == "already played":
        return [f"  {nearest.recorded.reference} would, but it was already played"]
    where = nearest.differences[0].where if nearest.differences else "its body"
    if reason == "diverged":
        lines = [f"  it diverges from {nearest.recorded.reference} at {where}"]
    else:
        lines = [
            f"  it was never recorded; the nearest, {nearest.recorded.reference}, differs from its start at {where}"
        ]
    for position, apart in enumerate(nearest.differences[:_SHOWN]):
        if position:
            lines.append(f"  and at {apart.where}")
        recorded, live = excerpts(apart)
        lines += [f"    {RECORDED}{recorded}", f"    {LIVE}{live}"]
    if len(nearest.differences) > _SHOWN:
        lines.append(f"  and at {len(nearest.differences) - _SHOWN} more places")
    return lines


def miss_fix(reason: MissReason, tapes: Sequence[str], program: str) -> MissFix:
    """The command of wiretape's own that mends a miss."""
    if reason == "already played":
        why, command = "to give recorded answers again", f"wiretape replay {shlex.join(tapes)} --repeat"
    else:
        why = "if the change is intended" if reason == "diverged" else "to record this run instead"
        command = f"wiretape record --update {shlex.quote(tapes[0])}"
    return MissFix(f"  {why}: {command} -- {program}", f"{command} -- {program}")
