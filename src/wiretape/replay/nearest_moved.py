"""What a request without an answer is most like, when messages that stand elsewhere are left aside.

A miss names what changed; that a report came earlier than recorded is no reason for it.
"""

from __future__ import annotations

from collections.abc import Iterator

from wiretape.replay.aligned import Side, members_of_messages
from wiretape.replay.compare import differences
from wiretape.replay.index import Probe
from wiretape.replay.mask import Masker
from wiretape.replay.miss import Nearest, is_masked, is_minor
from wiretape.replay.moved import MovedIndex
from wiretape.replay.pieces import without_members
from wiretape.replay.values import ABSENT, Difference
from wiretape.wire.base import Memo


def nearest_moved(moved: MovedIndex, probe: Probe, depth: int, memo: Memo, masker: Masker) -> Nearest | None:
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
    for n in range(both):
        one, other = recorded.kept(n), live.kept(n)
        if one is not other:
            yield from differences(one, other, live.kept_at(n))
    for n in range(both, len(recorded.course.kept)):
        yield Difference(recorded.kept_at(n), recorded.kept(n), ABSENT)
    for n in range(both, len(live.course.kept)):
        yield Difference(live.kept_at(n), ABSENT, live.kept(n))
