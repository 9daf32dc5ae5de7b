"""The tier `position`: the next answer of the same thread, whatever the request contains.

The thread of a live request is inferred: from the previous answer that it names, from messages that it shares with the
thread's last live request, or, for a thread's first call, from traits that it shares with the recorded call. If two
threads fit equally, neither is used, so that no agent gets another agent's answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from wiretape.matching.lookup.index import Probe
from wiretape.matching.lookup.templates import NormalizedMessages
from wiretape.matching.recorded import RecordedExchange
from wiretape.model.call import CallRequest, Message, Text
from wiretape.model.jsonvalue import Json
from wiretape.model.run import Run
from wiretape.wire.base import Memo

_INSTRUCTING: Final = ("system", "developer")
ENOUGH: Final = 3  # of six traits; with fewer in common, the agent was not recorded


@dataclass(slots=True, eq=False)
class _Thread:
    """A recorded thread: its calls in order, the call that started it, and its latest live request."""

    calls: list[RecordedExchange]
    started_by: RecordedExchange | None = None
    at: int = -1  # the index of the call that was played last
    live: CallRequest | None = None


@dataclass(frozen=True, slots=True)
class PositionMatch:
    """The next recorded call, or why there is none."""

    recorded: RecordedExchange | None = None
    already: RecordedExchange | None = None
    note: str = ""


@dataclass(slots=True)
class ThreadPositions:
    """The position of each thread of a session. Answers are noted at once, and evaluated when `find` needs them."""

    recorded: Sequence[RecordedExchange]
    played: bytearray
    mask: Callable[[Json], Json]
    shapes: NormalizedMessages
    memo: Memo
    runs: Callable[[], Sequence[Run]]
    _given: list[tuple[RecordedExchange, CallRequest]] = field(default_factory=list)
    _threads: list[_Thread] = field(default_factory=list)
    _places: dict[int, tuple[_Thread, int]] = field(default_factory=dict)  # by order of a recorded call
    _traits: dict[int, list[Json]] = field(default_factory=dict)  # by order of a recorded call
    _answers: dict[str, RecordedExchange] = field(default_factory=dict)  # by id of a recorded answer

    def note(self, recorded: RecordedExchange, probe: Probe) -> None:
        """Note that a recorded call was played for a live request."""
        call = probe.call(self.memo)
        if call is not None:
            self._given.append((recorded, call))

    def find(self, probe: Probe) -> PositionMatch:
        call = probe.call(self.memo)
        if call is None or probe.format is None:
            return PositionMatch()
        self._catch_up()
        threads = [one for one in self._threads if _same_kind(one.calls[0], probe)]
        if call.previous_response_id is not None:
            return self._after(call.previous_response_id, call)
        going = self._going_on(threads, call)
        if going is not None:
            return self._next(going, going.at, call)
        new = [one for one in threads if one.at < 0 and self._may_start(one) and self._has_tools_of(one, call)]
        return self._first(new, call)

    # -- threads with played calls

    def _going_on(self, threads: Sequence[_Thread], call: CallRequest) -> _Thread | None:
        """The thread whose last live request has most messages in common with this one, the first one included."""
        shared = [(self._shared(one.live, call), one) for one in threads if one.live is not None]
        most = max((count for count, _ in shared), default=0)
        best = [one for count, one in shared if count == most]
        return best[0] if most and len(best) == 1 else None

    def _shared(self, before: CallRequest, call: CallRequest) -> int:
        """The number of equal messages at the same index; 0 if the first user messages differ."""
        pairs = list(zip(self._keys(before.messages), self._keys(call.messages), strict=False))
        opening = next((n for n, message in enumerate(before.messages) if message.role not in _INSTRUCTING), None)
        if opening is None or opening >= len(pairs) or pairs[opening][0] != pairs[opening][1]:
            return 0
        return sum(1 for one, other in pairs if one == other)

    def _after(self, answer: str, call: CallRequest) -> PositionMatch:
        """The call after the answer that the request names."""
        before = self._answers.get(answer)
        if before is None or before.order not in self._places:
            return PositionMatch()
        return self._next(*self._places[before.order], call)

    def _next(self, thread: _Thread, at: int, call: CallRequest) -> PositionMatch:
        last = thread.calls[at]
        if at + 1 >= len(thread.calls):
            return PositionMatch(already=last)
        following = thread.calls[at + 1]
        if self.played[following.order]:
            return PositionMatch(already=following)
        if thread.live is not None and self._same(thread.live, call) and not self._is_retry(last, following):
            return PositionMatch(already=last)  # the same request again
        return PositionMatch(following)

    def _is_retry(self, last: RecordedExchange, following: RecordedExchange) -> bool:
        one, other = last.probe.call(self.memo), following.probe.call(self.memo)
        return one is not None and other is not None and len(one.messages) == len(other.messages)

    def _same(self, one: CallRequest, other: CallRequest) -> bool:
        return self._keys(one.messages) == self._keys(other.messages)

    def _keys(self, messages: Sequence[Message]) -> list[Json]:
        return [self.shapes.message(message).template for message in messages]

    # -- threads without played calls

    def _may_start(self, thread: _Thread) -> bool:
        return thread.started_by is None or bool(self.played[thread.started_by.order])

    def _has_tools_of(self, thread: _Thread, call: CallRequest) -> bool:
        """Whether both have no tools, or share one. The request for a title has no tools, say."""
        recorded = thread.calls[0].probe.call(self.memo)
        there = {tool.name for tool in recorded.tools} if recorded is not None else set()
        here = {tool.name for tool in call.tools}
        return bool(there & here) or not (there or here)

    def _first(self, threads: Sequence[_Thread], call: CallRequest) -> PositionMatch:
        if len(self._threads) == len(threads) == 1:
            return PositionMatch(threads[0].calls[0])
        live = traits(call, self.mask)
        alike = [(self._likeness(one.calls[0], live), one.calls[0]) for one in threads]
        most = max((count for count, _ in alike), default=0)
        best = [recorded for count, recorded in alike if count == most and count >= ENOUGH]
        if len(best) == 1:
            return PositionMatch(best[0])
        if not best:
            return PositionMatch()
        names = ", ".join(str(recorded.reference) for recorded in best[:3])
        return PositionMatch(note=f"by position it may be the first call of several threads: {names} fit equally well")

    def _likeness(self, recorded: RecordedExchange, live: Sequence[Json]) -> int:
        call = recorded.probe.call(self.memo)
        if call is None:
            return 0
        if recorded.order not in self._traits:
            self._traits[recorded.order] = traits(call, self.mask)
        return sum(1 for one, other in zip(self._traits[recorded.order], live, strict=True) if one == other)

    # -- the recording

    def _catch_up(self) -> None:
        if not self._threads:
            self._begin()
        for recorded, call in self._given:
            if recorded.order in self._places:
                thread, at = self._places[recorded.order]
                thread.at, thread.live = at, call
        self._given.clear()

    def _begin(self) -> None:
        for tape, run in enumerate(self.runs()):
            here = {one.exchange.number: one for one in self.recorded if one.tape == tape}
            by_call = {step.call.number: here[step.call.exchange] for step in run.steps if step.call.exchange in here}
            self._threads += _threads(run, by_call)
            self._answers |= {
                step.call.response.id: by_call[step.call.number]
                for step in run.steps
                if step.call.number in by_call and step.call.response is not None and step.call.response.id
            }
        for thread in self._threads:
            self._places |= {recorded.order: (thread, n) for n, recorded in enumerate(thread.calls)}


def traits(call: CallRequest, mask: Callable[[Json], Json]) -> list[Json]:
    """The traits that tell agents apart and stay the same between runs."""
    instructions = [_text(message) for message in call.messages if message.role in _INSTRUCTING]
    asked = next((_text(message) for message in call.messages if message.role not in _INSTRUCTING), None)
    return [
        call.model,
        [tool.name for tool in call.tools],
        call.stream,
        mask(instructions),
        mask(asked),
        sorted(call.settings),
    ]


def _text(message: Message) -> str:
    return "\n".join(block.text for block in message.blocks if isinstance(block, Text))


def _same_kind(recorded: RecordedExchange, probe: Probe) -> bool:
    there = recorded.probe
    assert probe.format is not None
    return (
        there.format is not None
        and there.format.name == probe.format.name
        and there.address.tail == probe.address.tail
        and there.address.method == probe.address.method
    )


def _threads(run: Run, by_call: Mapping[int, RecordedExchange]) -> Iterator[_Thread]:
    """The threads of a tape. Each side call counts as a thread."""
    aside = {step.call.number for step in run.side_calls}
    for thread in run.threads:
        calls = [by_call[number] for number in thread.calls if number in by_call and number not in aside]
        started = thread.from_call if thread.from_call is not None else run.agents[thread.agent].started_by
        if calls:
            yield _Thread(calls, by_call.get(started) if started is not None else None)
    yield from (_Thread([by_call[number]]) for number in sorted(aside) if number in by_call)
