"""Match requests that differ only in the position of asynchronous messages (subagent reports, notifications).

A live request matches the recorded call of the same thread whose history without these messages is equal. If several
calls match (they only answered such messages), the last one with no more messages than the live request is chosen.
So if the live run receives two reports at once, the call that answered only the first one is left over. If the live run
receives reports one by one that the recording had at once, and the recorded answer has no tool calls, the answer is
repeated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from wiretape.matching.async_messages.detect import DetectedThread
from wiretape.matching.async_messages.history import AsyncMessage, HistoryParts, ThreadHistories, ThreadHistory
from wiretape.matching.lookup.index import CallIndex, Probe
from wiretape.matching.lookup.trie import NOWHERE
from wiretape.matching.recorded import RecordedExchange
from wiretape.model.call import CallRequest, Message
from wiretape.wire.base import Memo


@dataclass(slots=True, eq=False)
class ThreadCall:
    """A recorded call in its thread. `had`: its asynchronous messages, by class."""

    recorded: RecordedExchange
    request: CallRequest
    history: ThreadHistory
    head: object
    had: Counter[int]
    text_only: bool  # its answer is only text: repeating it has no effect


@dataclass(slots=True, eq=False)
class AsyncThread:
    """A recorded thread with asynchronous messages."""

    histories: ThreadHistories
    opening: int
    calls: list[ThreadCall] = field(default_factory=list)
    at: dict[int, list[ThreadCall]] = field(default_factory=dict)  # by the node at which they end
    first_positions: dict[tuple[int, int], tuple[ThreadCall, AsyncMessage]] = field(
        default_factory=dict
    )  # the first position of each
    received: dict[int, Counter[int]] = field(
        default_factory=dict
    )  # by order of a played call: the messages of the live one


@dataclass(frozen=True, slots=True, eq=False)
class AsyncMatch:
    """The matching recorded call. `again`: it was played, and may be repeated. `already`: it was played."""

    thread: AsyncThread
    call: ThreadCall
    history: ThreadHistory
    again: bool = False
    already: bool = False


class AsyncIndex:
    """The recorded threads with asynchronous messages, by their first messages."""

    def __init__(
        self,
        detected: Iterable[DetectedThread],
        index: CallIndex,
        pieces: HistoryParts,
        memo: Memo,
        played: bytearray,
        text_only: Container[int],
    ) -> None:
        """`text_only`: orders of the calls whose answers are only text."""
        self._index = index
        self._pieces = pieces
        self._memo = memo
        self._played = played
        self._by_opening: dict[int, dict[tuple[int, ...], list[AsyncThread]]] = {}
        for one in detected:
            self._learn(one, text_only)

    def _learn(self, detected: DetectedThread, text_only: Container[int]) -> None:
        learn = self._index.level.learn
        movable: Counter[int] = Counter()
        for found in detected.inserted:
            movable.update(learn(piece.template) for _, piece in found)
        passing = frozenset(learn(piece.template) for piece in detected.passing)
        opening = len(detected.requests[0].messages)
        thread = AsyncThread(ThreadHistories(self._pieces, opening, movable, passing), opening)
        for recorded, request in zip(detected.calls, detected.requests, strict=True):
            if request.previous_response_id is not None:
                return  # the provider stores the history, so positions are unknown
            history = thread.histories.grow(request.messages, learn)
            head = self._index.head(recorded.probe, learn)
            call = ThreadCall(recorded, request, history, head, history.counts, recorded.order in text_only)
            thread.calls.append(call)
            thread.at.setdefault(history.end, []).append(call)
            for part in history.async_parts:
                thread.first_positions.setdefault(part.key, (call, part))
        thread.histories.forget_recent()
        kinds = self._kinds(detected.requests[0].messages)
        self._by_opening.setdefault(opening, {}).setdefault(kinds, []).append(thread)

    def _kinds(self, messages: Sequence[Message]) -> tuple[int, ...]:
        find = self._index.level.find
        return tuple([find(piece.template) for message in messages for piece in self._pieces.of(message)])

    def threads(self, request: CallRequest) -> Iterator[AsyncThread]:
        """The threads with the same first messages."""
        for opening, by_kinds in self._by_opening.items():
            if len(request.messages) >= opening:
                yield from by_kinds.get(self._kinds(request.messages[:opening]), ())

    def find(self, probe: Probe) -> AsyncMatch | None:
        """The match of a live request in the first thread that has an unplayed one; else a played one."""
        request = probe.call(self._memo)
        if request is None or request.previous_response_id is not None:
            return None
        already: AsyncMatch | None = None
        head: object = None
        for thread in self.threads(request):
            history = thread.histories.follow(request.messages, self._index.level.find)
            if history.end == NOWHERE or history.end not in thread.at:
                continue
            head = head or self._index.head(probe, self._index.level.find)
            found = self._choose(thread, history, [call for call in thread.at[history.end] if call.head == head])
            if found is not None and not found.already:
                return found
            already = already or found
        return already

    def _choose(self, thread: AsyncThread, history: ThreadHistory, alike: Sequence[ThreadCall]) -> AsyncMatch | None:
        """Choose among the thread's calls with this history (`alike`), in order, after the last played one."""
        counts = history.counts
        last = max((n for n, call in enumerate(alike) if self._played[call.recorded.order]), default=-1)
        before = alike[last] if last >= 0 else None
        received = thread.received.get(before.recorded.order, before.had) if before is not None else None
        onward = alike[last + 1 :]
        fitting = [call for call in onward if call.had <= counts]
        if fitting:
            most = max(call.had.total() for call in fitting)
            return AsyncMatch(thread, next(call for call in fitting if call.had.total() == most), history)
        if onward and received != counts:
            return AsyncMatch(thread, onward[0], history)
        if before is None:
            return None
        if received is not None and received < counts and before.text_only:
            return AsyncMatch(thread, before, history, again=True)
        return AsyncMatch(thread, before, history, already=True)

    def nearest(self, probe: Probe) -> AsyncMatch | None:
        """The call nearest to a missed request, without regard to positions of asynchronous messages."""
        request = probe.call(self._memo)
        if request is None or request.previous_response_id is not None:
            return None
        best: tuple[tuple[int, bool, int, int], AsyncMatch] | None = None
        for thread in self.threads(request):
            history = thread.histories.follow(request.messages, self._index.level.find)
            node = history.nodes[history.depth]
            for call in thread.calls:
                if node in call.history.nodes:
                    length = abs(len(call.history.kept) - len(history.kept))
                    rank = (-history.depth, bool(self._played[call.recorded.order]), length, call.recorded.order)
                    if best is None or rank < best[0]:
                        best = rank, AsyncMatch(thread, call, history)
        return best[1] if best is not None else None

    def note(self, found: AsyncMatch) -> None:
        """Note that the call was played for the live request."""
        found.thread.received[found.call.recorded.order] = found.history.counts
