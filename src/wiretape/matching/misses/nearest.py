"""Find the recorded call that is nearest to a missed request, and the differences that caused the miss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, dropwhile, islice
from operator import not_

from wiretape.compare.canonical import same
from wiretape.compare.difference import ABSENT, Difference, differences, differences_of_queries
from wiretape.compare.mask import Masker
from wiretape.compare.normalize import counts, loose
from wiretape.matching.async_messages.alignment import Side, members_of_messages
from wiretape.matching.async_messages.history import AsyncMessage, without_members
from wiretape.matching.async_messages.match import AsyncIndex
from wiretape.matching.lookup.index import CallIndex, LookupKey, Probe
from wiretape.matching.recorded import RecordedExchange, ReplaySource
from wiretape.model.common_prefix import common_prefix
from wiretape.model.jsonvalue import Json
from wiretape.runs.user_text import words
from wiretape.wire.base import Memo
from wiretape.wire.decoding import TOOLS, tools_by_name, without_tools

_RANKED = 500  # candidates that are ranked
_LOOKED_AT = 50  # candidates whose differences are computed
_COMPARED = 1000  # messages of all compared candidates, after which the search ends


@dataclass(frozen=True, slots=True)
class Nearest:
    """The recorded call that is nearest to a missed request, and their differences."""

    recorded: RecordedExchange
    differences: tuple[Difference, ...]
    similar: bool  # they share a message: the request is a changed version of the recorded one


def nearest_call(probe: Probe, place: LookupKey, index: CallIndex, recording: ReplaySource) -> Nearest | None:
    """The nearest call of the same wire format, preferably of the same path."""
    if place.path is None or probe.format is None:
        return None
    recorded, played = recording.exchanges, recording.played
    name = probe.format.name
    # If not even the first message was recorded, all calls of the path are candidates.
    similar = index.nearest(place.path) if place.path.depth else recording.groups.get((name, probe.address.tail))
    orders = _candidates(similar or recording.groups.get(name, ()), played)
    if not orders:
        return None
    length = len(place.path.items)

    def rank(order: int) -> tuple[bool, int, int]:
        call = index.length(order)
        return bool(played[order]), abs(call - length), order

    found, compared = [], 0
    for order in sorted(orders, key=rank)[:_LOOKED_AT]:
        differing = tuple(significant(recorded[order], probe, recording.masker))
        found.append((bool(played[order]), len(differing), order, differing))
        compared += length + index.length(order)
        # With a common prefix, the first in rank is the nearest.
        if place.path.depth or compared > _COMPARED:
            break
    *_, order, differing = min(found, key=lambda item: item[:3])
    return Nearest(
        recorded[order], differing, similar=place.path.depth > 0 or _shares_a_message(differing, probe, length)
    )


def nearest_at_address(probe: Probe, recording: ReplaySource) -> Nearest | None:
    """The nearest recorded request to the same address, for a request without a known format."""
    where, played = probe.address, recording.played
    found = []
    for order in _candidates(recording.groups.get((where.method, where.path, where.host), ()), played)[:_LOOKED_AT]:
        one = recording.exchanges[order]
        differing = [
            *differences_of_queries(one.probe.address.query, where.query),
            *differences(one.probe.value, probe.value),
        ]
        firm = [difference for difference in differing if not is_masked(difference, recording.masker)]
        found.append(Nearest(one, tuple(firm or differing), similar=True))
    return min(found, key=lambda one: (bool(played[one.recorded.order]), len(one.differences)), default=None)


def _shares_a_message(differing: Sequence[Difference], probe: Probe, length: int) -> bool:
    call = probe.decoded
    if call is None:
        return False
    places = [call.path(number) for number in range(length)]
    touched = {place for place in places for difference in differing if _within(difference.where, place)}
    return len(touched) < length


def _within(where: str, place: str) -> bool:
    return where.startswith(place) and where[len(place) : len(place) + 1] in ("", ".", "[")


def _candidates(orders: Sequence[int], played: bytearray) -> list[int]:
    """The unplayed candidates, or all if all are played; only the first of very many, to limit the cost of a miss."""
    waiting = compress(orders, map(not_, map(played.__getitem__, orders)))
    return list(islice(waiting, _RANKED)) or list(orders[:_RANKED])


def significant(recorded: RecordedExchange, probe: Probe, masker: Masker) -> list[Difference]:
    """The differences that caused a miss, the address first; all differences if only minor ones exist."""
    assert probe.format is not None
    asked = list(_asked(recorded.probe, probe))
    every = list(differences_of_bodies(recorded.probe, probe))
    chosen = [
        differing for differing in asked if not _equal(masker.value(differing.recorded), masker.value(differing.live))
    ]
    chosen += [differing for differing in every if _counted(differing, probe) and not is_masked(differing, masker)]
    return chosen or [*asked, *every]


def _asked(recorded: Probe, live: Probe) -> Iterator[Difference]:
    """Differences of method, path and query. A gateway may change the prefix of the path, so it does not count."""
    one, other = recorded.address, live.address
    if one.method != other.method:
        yield Difference("method", one.method, other.method)
    if one.path != other.path and (one.tail != other.tail or _model(recorded) != _model(live)):
        yield Difference("path", one.path, other.path)
    yield from differences_of_queries(one.query, other.query)


def _model(probe: Probe) -> str | None:
    return probe.decoded.model if probe.decoded is not None else None


def is_minor(differing: Difference, probe: Probe) -> bool:
    """Whether the tier `normalized` ignores the difference: a spelling, an id or a volatile setting."""
    return not _counted(differing, probe) or _equal(loose(differing.recorded), loose(differing.live))


def _counted(differing: Difference, probe: Probe) -> bool:
    return probe.format is None or counts(differing.where, probe.format.volatile)


def is_masked(differing: Difference, masker: Masker) -> bool:
    """Whether the tier `masked` ignores the difference: volatile text."""
    one, other = differing.recorded, differing.live
    if one is ABSENT or other is ABSENT:
        return one is other
    if isinstance(one, str) and isinstance(other, str):
        return masker.remembered((one, other), lambda: _equal(masker.value(loose(one)), masker.value(loose(other))))
    return _equal(masker.value(loose(one)), masker.value(loose(other)))


def _equal(recorded: Json, live: Json) -> bool:
    try:
        return bool(recorded == live)
    except RecursionError:  # Python before 3.12 limits comparisons of nested values, too
        return same(recorded, live)


def differences_of_bodies(recorded: Probe, live: Probe) -> Iterator[Difference]:
    """The differences of two bodies. Tools are compared by name; new, missing and moved tools come last."""
    one = tools_by_name(recorded.value, recorded.decoded)
    other = tools_by_name(live.value, live.decoded)
    if list(one) == list(other) or not one or not other:
        yield from differences(recorded.value, live.value)
        return
    yield from differences(without_tools(recorded.value), without_tools(live.value))
    yield from _tools(one, other)


def _tools(recorded: dict[str, Json], live: dict[str, Json]) -> Iterator[Difference]:
    now = list(live)
    places = {name: place for place, name in enumerate(now)}
    renamed = set()
    for place, (name, tool) in enumerate(recorded.items()):
        there = now[place] if place < len(now) else name
        if name in live:
            yield from differences(tool, live[name], f"{TOOLS}[{places[name]}]")
        elif there not in recorded:
            renamed.add(there)
            yield from differences(tool, live[there], f"{TOOLS}[{place}]")
        else:
            yield Difference(f"{TOOLS}[{place}]", tool, ABSENT)
    for name, tool in live.items():
        if name not in recorded and name not in renamed:
            yield Difference(f"{TOOLS}[{places[name]}]", ABSENT, tool)
    pairs = zip((name for name in recorded if name in live), (name for name in live if name in recorded), strict=True)
    moved = list(dropwhile(lambda pair: pair[0] == pair[1], pairs))
    if moved:
        yield Difference(f"{TOOLS} (order)", *(", ".join(names) for names in zip(*moved, strict=True)))


def nearest_moved(moved: AsyncIndex, probe: Probe, depth: int, memo: Memo, masker: Masker) -> Nearest | None:
    """The nearest call without regard to the positions of asynchronous messages.

    None unless the common prefix is then longer than `depth`, the one with all messages.
    """
    found = moved.nearest(probe)
    live = probe.call(memo)
    if found is None or live is None or found.history.depth <= depth:
        return None
    call = found.call
    value = call.recorded.probe.value
    pairs = _divergence(Side(value, call.request, call.history), Side(probe.value, live, found.history))
    own = members_of_messages(live) | members_of_messages(call.request)
    beside = differences(without_members(value, own), without_members(probe.value, own))
    firm = [one for one in (*pairs, *beside) if not is_minor(one, probe) and not is_masked(one, masker)]
    return Nearest(call.recorded, tuple(firm), similar=True) if firm else None


def _divergence(recorded: Side, live: Side) -> Iterator[Difference]:
    """The differences from the place on where a live history diverges from a recorded one."""
    both = min(len(recorded.history.kept), len(live.history.kept))
    changed = _changed_notification(recorded, live)
    if changed is not None:
        part, n = changed
        yield from differences(recorded.at(part), live.kept(n), live.kept_at(n))
        return
    for n in range(both):
        one, other = recorded.kept(n), live.kept(n)
        if one is not other:
            yield from differences(one, other, live.kept_at(n))
    for n in range(both, len(recorded.history.kept)):
        yield Difference(recorded.kept_at(n), recorded.kept(n), ABSENT)
    for n in range(both, len(live.history.kept)):
        yield Difference(live.kept_at(n), ABSENT, live.kept(n))


def _changed_notification(recorded: Side, live: Side) -> tuple[AsyncMessage, int] | None:
    """The recorded asynchronous message that the live history has with another text where it diverges."""
    history = live.history
    if history.depth == len(history.messages):
        return None
    for n in range(history.kept_to[history.depth], history.kept_to[history.depth + 1]):
        text = history.kept[n].text
        if text and not words(text):
            received = {part.key for part in history.async_parts}
            missing = [part for part in recorded.history.async_parts if part.key not in received]
            similar = max(missing, key=lambda part: common_prefix(part.piece.text or "", text), default=None)
            return (similar, n) if similar is not None else None
    return None
