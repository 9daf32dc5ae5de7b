"""What a request without an answer is most like, when messages that stand elsewhere are left aside.

A miss names what changed; that a report came earlier than recorded is no reason for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import dropwhile, takewhile

from wiretape.compare.difference import ABSENT, Difference, differences
from wiretape.compare.mask import Masker
from wiretape.matching.async_messages.alignment import Side, members_of_messages
from wiretape.matching.async_messages.history import AsyncMessage, without_members
from wiretape.matching.async_messages.match import AsyncIndex
from wiretape.matching.lookup.index import Probe
from wiretape.matching.misses.miss import Nearest, is_masked, is_minor
from wiretape.model.jsonvalue import Json
from wiretape.runs.words import words
from wiretape.wire.base import Memo
from wiretape.wire.tool_lists import TOOLS, tools_by_name, without_tools


def differences_of_bodies(recorded: Probe, live: Probe) -> Iterator[Difference]:
    """The differences of two bodies. Tools that came, went or changed their places are told once, after the rest."""
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
    """None unless the request goes further along a recorded one so than with all its messages (`depth`)."""
    found = moved.nearest(probe)
    live = probe.call(memo)
    if found is None or live is None or found.course.depth <= depth:
        return None
    call = found.call
    value = call.recorded.probe.value
    pairs = _divergence(Side(value, call.request, call.course), Side(probe.value, live, found.course))
    own = members_of_messages(live) | members_of_messages(call.request)
    beside = differences(without_members(value, own), without_members(probe.value, own))
    firm = [one for one in (*pairs, *beside) if not is_minor(one, probe) and not is_masked(one, masker)]
    return Nearest(call.recorded, tuple(firm), alike=True) if firm else None


def _divergence(recorded: Side, live: Side) -> Iterator[Difference]:
    """Where a live course leaves a recorded one, and all that differs from there on."""
    both = min(len(recorded.course.kept), len(live.course.kept))
    changed = _changed_notification(recorded, live)
    if changed is not None:
        stood, n = changed
        yield from differences(recorded.at(stood), live.kept(n), live.kept_at(n))
        return
    for n in range(both):
        one, other = recorded.kept(n), live.kept(n)
        if one is not other:
            yield from differences(one, other, live.kept_at(n))
    for n in range(both, len(recorded.course.kept)):
        yield Difference(recorded.kept_at(n), recorded.kept(n), ABSENT)
    for n in range(both, len(live.course.kept)):
        yield Difference(live.kept_at(n), ABSENT, live.kept(n))


def _changed_notification(recorded: Side, live: Side) -> tuple[AsyncMessage, int] | None:
    """What came of itself in the recording and stands, with other words, where the live course leaves it."""
    course = live.course
    if course.depth == len(course.messages):
        return None
    for n in range(course.kept_to[course.depth], course.kept_to[course.depth + 1]):
        text = course.kept[n].text
        if text and not words(text):
            heard = {(stood.kind, stood.nth) for stood in course.came}
            missing = [stood for stood in recorded.course.came if (stood.kind, stood.nth) not in heard]
            alike = max(missing, key=lambda stood: _in_common(stood.piece.text or "", text), default=None)
            return (alike, n) if alike is not None else None
    return None


def _in_common(one: str, other: str) -> int:
    """How many leading characters."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
