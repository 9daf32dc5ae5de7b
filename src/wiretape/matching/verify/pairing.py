"""Pair the calls of a later run with recorded ones: by a replay of their requests, then by position in their threads.

It is in `matching` because it replays requests.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from wiretape.compare.difference import Tier
from wiretape.matching.session import ReplaySession
from wiretape.matching.values import Answer, LiveRequest, ReplayOptions
from wiretape.model.call import ModelCall
from wiretape.model.http import Exchange, body_bytes
from wiretape.model.run import Run
from wiretape.runs.run import build_run
from wiretape.wire.registry import decode

if TYPE_CHECKING:
    from wiretape.tape.reading.reader import Tape


_Kind: TypeAlias = tuple[str, Literal["side", "root", "subagent"]]  # of a thread: its wire format and agent
_PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


@dataclass(frozen=True, slots=True)
class Paired:
    """A recorded call and a live one; one is None for a new or vanished call. `tier`: the tier of their match.

    `thread`: the number of the live call that begins its thread.
    """

    recorded: ModelCall | None
    live: ModelCall | None
    tier: Tier | None = None
    thread: int | None = None

    @property
    def first(self) -> bool:
        """Whether it begins its thread, so that its whole history comes from the program."""
        return self.live is not None and self.live.number == self.thread


def failed_transiently(call: ModelCall) -> bool:
    """Whether a call got no answer, or a transient error."""
    response = call.response
    if response is None:
        return call.ended is not None
    return response.status in _PASSING or (response.error is not None and response.status < 400)


def unanswered(tape: Tape) -> list[ModelCall]:
    """The calls of a tape whose last attempt got no answer, or a transient error."""
    run = build_run(decode(tape.exchanges))
    again = _tried_again(run)
    return [step.call for step in run.steps if step.call.number not in again and failed_transiently(step.call)]


def tried_again(tape: Tape) -> frozenset[int]:
    """The calls of a tape that failed and were retried: only their last attempt counts."""
    return _tried_again(build_run(decode(tape.exchanges)))


def _tried_again(run: Run) -> frozenset[int]:
    calls = {step.call.number: step.call for step in run.steps}
    again = {step.cause.call for step in run.steps if step.cause.kind == "retry"}
    return frozenset(number for number, call in calls.items() if number in again and failed_transiently(call))


def paired(recorded: Tape, live: Tape, options: ReplayOptions) -> list[Paired]:
    """Every call of both tapes once, in the order of the live run; vanished calls come last.

    Calls that failed and were retried are left out.
    """
    old, new = (_once(build_run(decode(tape.exchanges))) for tape in (recorded, live))
    tiers = _replayed(recorded, live, old, new, options)
    places = _Places(old, new)
    for live_number, (recorded_number, _) in tiers.items():
        places.take(recorded_number, live_number)
    by_number = {step.call.number: step.call for step in old.steps}
    made: list[Paired] = []
    for step in new.steps:
        number = step.call.number
        known = tiers.get(number)
        was = known[0] if known is not None else places.find(number)
        tier = known[1] if known is not None else None
        made.append(Paired(by_number[was] if was is not None else None, step.call, tier, places.thread_of(number)))
    return [*made, *(Paired(by_number[number], None) for number in places.left)]


def _once(run: Run) -> Run:
    """The run without the attempts that were retried."""
    gone = _tried_again(run)
    return replace(run, steps=tuple(step for step in run.steps if step.call.number not in gone)) if gone else run


def _replayed(recorded: Tape, live: Tape, old: Run, new: Run, options: ReplayOptions) -> dict[int, tuple[int, Tier]]:
    """The matches of a replay: by number of the live call, the number of the recorded one and the tier."""
    calls = _by_exchange(step.call for step in old.steps)
    asked = _by_exchange(step.call for step in new.steps)
    kept = tuple(one for one in recorded.exchanges if one.number in calls or one.messages)
    session = ReplaySession([replace(recorded, exchanges=kept)], options)
    found: dict[int, tuple[int, Tier]] = {}
    for exchange in live.exchanges:
        if exchange.messages or len(asked[exchange.number]) != 1:
            continue  # a WebSocket's calls are paired by position
        outcome = session.answer(_request(exchange))
        if isinstance(outcome, Answer) and (there := calls[outcome.reference.exchange]):
            found[asked[exchange.number][0].number] = there[0].number, outcome.tier
    return found


def _by_exchange(calls: Iterable[ModelCall]) -> dict[int, list[ModelCall]]:
    made: dict[int, list[ModelCall]] = defaultdict(list)
    for call in calls:
        made[call.exchange].append(call)
    return made


def _request(exchange: Exchange) -> LiveRequest:
    request = exchange.request
    headers = [
        pair for pair in request.headers.pairs() if pair[0] != "content-encoding"
    ]  # bodies on the tape are decoded
    return LiveRequest(request.method, request.url, type(request.headers)(headers), body_bytes(request.body))


class _Places:
    """The threads of both runs, and the pairs of them."""

    def __init__(self, old: Run, new: Run) -> None:
        self._old, self._new = _threads(old), _threads(new)
        self._old_of = {number: thread for thread in self._old for number in thread.calls}
        self._new_of = {number: thread for thread in self._new for number in thread.calls}
        self._place_of = {number: place for thread in self._new for place, number in enumerate(thread.calls)}
        self._partners: dict[_Thread, _Thread] = {}  # a live thread -> the recorded one
        self._partnered: set[_Thread] = set()  # the recorded threads of these pairs
        self._taken: set[int] = set()
        self._begun: set[_Thread] = set()  # recorded threads of which a call was taken
        self._waiting: dict[_Kind, deque[_Thread]] = defaultdict(deque)  # unpaired threads; some may have begun since
        for thread in self._old:
            self._waiting[thread.kind].append(thread)

    def take(self, was: int, number: int) -> None:
        """Note a pair of calls: their threads are a pair, too."""
        self._taken.add(was)
        there, here = self._old_of[was], self._new_of[number]
        if here not in self._partners and there not in self._partnered:
            self._partners[here] = there
            self._partnered.add(there)
        self._begun.add(there)

    def find(self, number: int) -> int | None:
        """The unpaired recorded call at the same position of its thread."""
        here = self._new_of[number]
        there = self._partners.get(here) or self._partner(here)
        place = self._place_of[number]
        if there is None or place >= len(there.calls) or there.calls[place] in self._taken:
            return None
        self.take(there.calls[place], number)
        return there.calls[place]

    def thread_of(self, number: int) -> int:
        return self._new_of[number].calls[0]

    @property
    def left(self) -> Iterator[int]:
        return (number for number in sorted(self._old_of) if number not in self._taken)

    def _partner(self, here: _Thread) -> _Thread | None:
        """The first unpaired recorded thread of the same kind."""
        waiting = self._waiting[here.kind]
        while waiting and waiting[0] in self._begun:
            waiting.popleft()
        return waiting[0] if waiting else None


@dataclass(frozen=True, slots=True, eq=False)
class _Thread:
    calls: Sequence[int]
    kind: _Kind


def _threads(run: Run) -> list[_Thread]:
    side = {step.call.number for step in run.side_calls}
    parents = {agent.number: agent.parent for agent in run.agents}
    formats = {step.call.number: step.call.format for step in run.steps}
    agents = {step.call.number: step.agent for step in run.steps}
    grouped: dict[int, list[int]] = defaultdict(list)
    for step in run.steps:
        grouped[step.thread].append(step.call.number)
    made = []
    for calls in grouped.values():
        first = calls[0]
        who: Literal["side", "root", "subagent"] = "root" if parents.get(agents[first]) is None else "subagent"
        made.append(_Thread(tuple(calls), (formats[first], "side" if first in side else who)))
    return made
