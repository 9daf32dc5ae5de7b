"""Differences of two requests whose asynchronous messages have other positions: block by block, then what moved.

A moved message is reported once for each pair of positions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from wiretape.compare.difference import ABSENT, Difference, Differences
from wiretape.matching.async_messages.history import AsyncMessage, HistoryPart, ThreadHistory, at_path, without_members
from wiretape.matching.async_messages.match import AsyncMatch, AsyncThread
from wiretape.matching.lookup.index import Probe
from wiretape.model.call import CallRequest
from wiretape.model.common_prefix import common_run
from wiretape.model.jsonvalue import Json
from wiretape.model.jsonwalk import text_of
from wiretape.model.wording import plural
from wiretape.wire.base import Memo

NOT_YET = "not yet"


@dataclass(slots=True)
class Alignment:
    """Compares live requests with their recorded matches, each pair of blocks once."""

    differences: Differences
    memo: Memo
    _compared: dict[int, tuple[list[HistoryPart], list[HistoryPart]]] = field(default_factory=dict)  # by thread
    _reported: set[tuple[int, int, int, str]] = field(default_factory=set)

    def compare(self, found: AsyncMatch, probe: Probe) -> tuple[list[Difference], list[Difference]]:
        """The differences of the blocks, and those of the positions."""
        live = probe.call(self.memo)
        assert live is not None
        recorded, thread = found.call, found.thread
        own = members_of_messages(recorded.request) | members_of_messages(live)
        value = recorded.recorded.probe.value
        differing = list(self.differences.between(without_members(value, own), without_members(probe.value, own)))
        before = self._compared.get(id(thread), ([], []))
        start = min(common_run(before[0], recorded.history.kept), common_run(before[1], found.history.kept))
        self._compared[id(thread)] = recorded.history.kept, found.history.kept
        ours = Side(value, recorded.request, recorded.history)
        theirs = Side(probe.value, live, found.history)
        for n in range(start, min(len(ours.history.kept), len(theirs.history.kept))):
            differing += self.differences.of_pair(ours.kept(n), theirs.kept(n), theirs.kept_at(n))
        return [*differing, *self._words_of_moved(thread, theirs)], list(self._moved(found, theirs))

    def _words_of_moved(self, thread: AsyncThread, live: Side) -> Iterator[Difference]:
        for part in live.history.async_parts:
            call, there = thread.first_positions[part.key]
            recorded = Side(call.recorded.probe.value, call.request, call.history)
            yield from self.differences.of_pair(recorded.at(there), live.at(part), live.place(part))

    def _moved(self, found: AsyncMatch, live: Side) -> Iterator[Difference]:
        thread = found.thread
        recorded = Side(found.call.recorded.probe.value, found.call.request, found.call.history)
        ours = _by_key(recorded.history.async_parts)
        theirs = _by_key(live.history.async_parts)
        if found.again and self._is_new(thread, next(iter(theirs)), f"again {len(theirs)}"):
            was = f"answered once, with {plural(len(ours), 'asynchronous message')}"
            yield Difference(
                "its answer (given again)", was, f"asked again, with {plural(len(theirs), 'asynchronous message')}"
            )
        for key, part in theirs.items():
            there = ours.get(key)
            if there is not None and (there.after, there.joined) == (part.after, part.joined):
                continue
            if self._is_new(thread, key, "elsewhere" if there is not None else "early"):
                call, first = (found.call, there) if there is not None else thread.first_positions[key]
                side = Side(call.recorded.probe.value, call.request, call.history)
                yield Difference(
                    f"{live.place(part)} (moved)",
                    f"at {side.place(first)}, from {call.recorded.reference} on: {_text_of(side.at(first))}",
                    f"at {live.place(part)}: {_text_of(live.at(part))}",
                )
        for key, part in ours.items():
            if key not in theirs and self._is_new(thread, key, "late"):
                yield Difference(f"{recorded.place(part)} (moved)", _text_of(recorded.at(part)), NOT_YET)
        yield from self._fewer_or_more(thread, recorded, live)

    def _fewer_or_more(self, thread: AsyncThread, recorded: Side, live: Side) -> Iterator[Difference]:
        """Answers to asynchronous messages that only one of the runs has."""
        ours = _by_key(recorded.history.passing)
        theirs = _by_key(live.history.passing)
        for key, part in ours.items():
            if key not in theirs and self._is_new(thread, key, "fewer"):
                yield Difference(f"{recorded.place(part)} (passed over)", recorded.at(part), ABSENT)
        for key, part in theirs.items():
            if key not in ours and self._is_new(thread, key, "more"):
                yield Difference(f"{live.place(part)} (given again)", ABSENT, live.at(part))

    def _is_new(self, thread: AsyncThread, key: tuple[int, int], how: str) -> bool:
        place = (id(thread), *key, how)
        if place in self._reported:
            return False
        self._reported.add(place)
        return True


@dataclass(frozen=True, slots=True)
class Side:
    """A request with its body and history: the paths and wire values of its parts."""

    value: Json
    request: CallRequest
    history: ThreadHistory

    def kept(self, n: int) -> Json:
        return self._value(self.history.kept[n], self.kept_at(n))

    def kept_at(self, n: int) -> str:
        return self.request.path(self.history.kept_in[n]) + self.history.kept[n].path

    def place(self, part: AsyncMessage) -> str:
        return self.request.path(part.message)

    def at(self, part: AsyncMessage) -> Json:
        return self._value(part.piece, self.place(part) + part.piece.path)

    def _value(self, piece: HistoryPart, where: str) -> Json:
        return piece.text if piece.part else at_path(self.value, where)


def _by_key(parts: Iterable[AsyncMessage]) -> dict[tuple[int, int], AsyncMessage]:
    return {part.key: part for part in parts}


def members_of_messages(request: CallRequest) -> frozenset[str]:
    """The members of a body that have its messages."""
    return frozenset(name.partition(".")[0].partition("[")[0] for _, name in request.segments)


def _text_of(value: Json) -> str:
    return value if isinstance(value, str) else text_of(value)
