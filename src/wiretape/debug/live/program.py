"""A running program under the debugger: its calls, which of them are held, and its output.

Sans-IO: an adapter reports requests and answers and asks which calls to hold; commands decide what happens to them. The
run is rebuilt when it is read after a change. Not thread-safe: the owner calls it under one lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Literal, Protocol

from wiretape.debug.annotated_run import AnnotatedRun
from wiretape.debug.breakpoints import Breakpoint, Breakpoints
from wiretape.debug.expression.expression import names_in
from wiretape.debug.live.pending_calls import (
    MOST_OUTPUT,
    WARN_AFTER,
    Action,
    AnswerEditor,
    Decision,
    Mode,
    OutputLine,
    PendingCall,
    Release,
    Stepping,
)
from wiretape.debug.timeline import Stop
from wiretape.errors import UsageError
from wiretape.model import wording
from wiretape.model.call import ModelCall
from wiretape.model.http import Exchange, WsMessage
from wiretape.model.run import Run
from wiretape.runs.run import build_run
from wiretape.wire.base import Memo
from wiretape.wire.registry import Registry, default_registry, numbered


class WalkedRun(Protocol):
    """The parts of a debugger's state that a live program reads and extends."""

    annotated: AnnotatedRun
    breakpoints: Breakpoints

    @property
    def here(self) -> Stop: ...
    def grow(self, run: Run) -> None: ...


@dataclass(slots=True)
class _Entry:
    """A request of the program.

    `call` is set for a call on a WebSocket. The number of `exchange` is then the adapter's own, and `call.exchange` is
    the number of the WebSocket.
    """

    exchange: Exchange
    client_timeout: float | None = None
    call: ModelCall | None = None
    recorded: Exchange | None = None
    actions: frozenset[Action] = frozenset()
    miss: str = ""
    drift: tuple[str, ...] = ()
    release: Release | None = None
    calls: tuple[ModelCall, ...] | None = None


@dataclass(slots=True)
class LiveProgram:
    """One program. `start` starts it, `stop` ends it; `expected` is the run that it is replayed from."""

    debugger: WalkedRun
    mode: Mode
    clock: Callable[[], float]
    editor: AnswerEditor
    start: Callable[[], None] = lambda: None
    stop: Callable[[], None] = lambda: None
    expected: Run | None = None
    registry: Registry = field(default_factory=default_registry)
    pending: list[PendingCall] = field(default_factory=list)
    output: deque[OutputLine] = field(default_factory=lambda: deque(maxlen=MOST_OUTPUT))
    stepping: Stepping | None = None  # where the last move holds the program, apart from breakpoints
    released: bool = False  # no call is held any more
    running: bool = False
    exit_code: int | None = None  # set when the program has ended
    live_tape: str = ""  # the tape that records the answers of real models in a replay
    _entries: dict[int, _Entry] = field(default_factory=dict)
    _connections: dict[int, tuple[Exchange, Sequence[WsMessage]]] = field(default_factory=dict)
    _numbers: dict[int, int] = field(default_factory=dict)  # entry -> call
    _memo: Memo = field(default_factory=Memo)
    _news: bool = False
    _settled: int | None = None  # the exchange that was answered last
    _warned: set[tuple[int, str]] = field(default_factory=set)

    # -- for the adapter -------------------------------------------------------------------------------------------

    def request_started(
        self, exchange: Exchange, client_timeout: float | None = None, call: ModelCall | None = None
    ) -> None:
        """A request arrived; `exchange` has no response yet."""
        self._entries[exchange.number] = _Entry(exchange, client_timeout, call)
        self._news = True

    def websocket_opened(self, exchange: Exchange, messages: Sequence[WsMessage]) -> None:
        """A WebSocket opened, whose calls are reported one by one. `messages` grows with it."""
        self._connections[exchange.number] = exchange, messages

    def set_actions(
        self,
        number: int,
        actions: frozenset[Action],
        recorded: Exchange | None = None,
        miss: str = "",
        drift: Sequence[str] = (),
    ) -> None:
        """Set what the user can do with a call, and the recorded answer that it would get."""
        entry = self._entries[number]
        entry.actions, entry.recorded, entry.miss, entry.drift = actions, recorded, miss, tuple(drift)

    def hold_if_wanted(self, number: int, release: Release) -> bool:
        """Hold a call if stepping or a breakpoint stops it now. Returns whether it is held.

        The stop is the call's answer if that is known, else its request.
        """
        if self.released or not self._may_be_held(number):
            return False
        call = self.number_of(number)
        if call is None:
            return False
        answered = self._entries[number].exchange.response is not None
        found = self._answer_stop(call) if answered else self._request_stop(number, call)
        if found is None:
            return False
        self.hold(number, release, *found)
        return True

    def hold(self, number: int, release: Release, stop: Stop | None = None, reason: str = "") -> None:
        """Hold a call until `release` is called with a decision."""
        entry = self._entries[number]
        entry.release = release
        call = self.number_of(number)
        assert call is not None, "only model calls are held"
        phase: Literal["request", "answer"] = "request" if entry.exchange.response is None else "answer"
        step = self.debugger.annotated.timeline.step(call)
        self.pending.append(
            PendingCall(
                number=call,
                stop=stop or Stop(phase, call),
                agent=self.debugger.annotated.timeline.run.agents[step.agent].name,
                exchange=entry.exchange,
                recorded=entry.recorded,
                since=self.clock(),
                actions=entry.actions,
                reason=reason,
                client_timeout=entry.client_timeout,
                miss=entry.miss if phase == "request" else "",
            )
        )
        self.stepping = None

    def request_changed(self, exchange: Exchange) -> None:
        """The request of a call was edited."""
        self._entries[exchange.number].exchange = exchange
        self._changed(exchange.number)

    def answer_known(
        self,
        exchange: Exchange,
        actions: frozenset[Action] | None = None,
        drift: Sequence[str] | None = None,
        call: ModelCall | None = None,
    ) -> None:
        """The answer to a call is known, but not sent to the program yet. `call`: as in `request_started`."""
        entry = self._entries.setdefault(exchange.number, _Entry(exchange))
        entry.exchange = exchange
        entry.call = call or entry.call
        entry.drift = entry.drift if drift is None else tuple(drift)
        entry.actions = entry.actions if actions is None else actions
        self._changed(exchange.number)

    def settled(self, number: int) -> None:
        """The answer to a call was sent, or will not change any more."""
        self._remove_pending(number)
        self._settled = number

    def answer_started(self, number: int) -> None:
        """An answer starts to be sent, or its connection is closed. May be called without the lock."""
        self._settled = number

    def client_left(self, number: int) -> None:
        """The program closed the connection of a call."""
        self._remove_pending(number)

    def ended(self, code: int) -> None:
        self.exit_code, self.running = code, False
        self.pending.clear()

    def _changed(self, number: int) -> None:
        self._entries[number].calls = None
        self._news = True

    def _remove_pending(self, number: int) -> None:
        self.pending = [one for one in self.pending if one.exchange.number != number]

    # -- which calls are held --------------------------------------------------------------------------------------

    def _may_be_held(self, number: int) -> bool:
        """Whether anything could hold a call; otherwise the run is not rebuilt for it."""
        return bool(self.stepping or self._entries[number].miss or self._points())

    @property
    def may_hold_answers(self) -> bool:
        """Whether an answer could be held: only then the adapter buffers answers until they are complete."""
        if self.released:
            return False
        stepping = self.stepping is not None and self.stepping.answers
        return stepping or any(point.phase != "request" for point in self._points())

    @property
    def may_hold(self) -> bool:
        return not self.released and bool(self.stepping or self._points())

    def _points(self) -> list[Breakpoint]:
        return [point for point in self.debugger.breakpoints.points if point.enabled]

    def _request_stop(self, number: int, call: int) -> tuple[Stop, str] | None:
        stop = Stop("request", call)
        if self._entries[number].miss:
            return stop, "no recorded call answers it"
        if self._stops_at(stop):
            return stop, ""
        points = [point for point in self._points() if _needs_result(point)]
        for use in self.debugger.annotated.timeline.run.tool_uses if points else ():
            at = Stop("tool", use.call_number, use.index)
            if use.result_call != call:
                continue
            hit = next((p for p in points if self.debugger.breakpoints.matches(p, self.debugger.annotated, at)), None)
            if hit is not None:
                return stop, f"breakpoint {hit.number}: {hit.text} (the result of {use.call.name} in call {at.call})"
        return None

    def _answer_stop(self, call: int) -> tuple[Stop, str] | None:
        line = self.debugger.annotated.timeline
        stops = [Stop("answer", call), *(Stop("tool", call, use.index) for use in line.uses(call))]
        return next(((stop, "") for stop in stops if self._stops_at(stop)), None)

    def _stops_at(self, stop: Stop) -> bool:
        if self.stepping is not None and self.stepping.at(stop):
            return True
        return self.debugger.breakpoints.hit_at(self.debugger.annotated, stop)

    # -- the run ---------------------------------------------------------------------------------------------------

    def refresh(self) -> bool:
        """Rebuild the debugger's run if anything changed. Returns whether it did."""
        if not self._news:
            return False
        self._news = False
        calls = [call for entry in self._entries.values() for call in self._calls_of(entry)]
        made = numbered(calls, [entry.exchange for entry in self._entries.values() if entry.call is None])
        parts = {(e.call.exchange, e.call.part): number for number, e in self._entries.items() if e.call is not None}
        self._numbers = {}
        for call in made:
            self._numbers.setdefault(parts.get((call.exchange, call.part), call.exchange), call.number)
        others = [number for number in self._entries if number not in self._numbers]
        self.debugger.grow(build_run(made, others))
        return True

    def _calls_of(self, entry: _Entry) -> tuple[ModelCall, ...]:
        if entry.call is not None:
            return (entry.call,)
        if entry.calls is None:
            entry.calls = self.registry.calls_of(entry.exchange, self._memo)
        return entry.calls

    def number_of(self, exchange: int) -> int | None:
        """The call number of an exchange; None if it is not a model call."""
        self.refresh()
        return self._numbers.get(exchange)

    @property
    def last_answered(self) -> int | None:
        """The number of the call that was answered last."""
        return self.number_of(self._settled) if self._settled is not None else None

    @property
    def exchanges(self) -> Mapping[int, Exchange]:
        """The current state of every exchange, as a view that grows with the run. A WebSocket is one exchange."""
        return _Exchanges(self._entries, self._connections)

    def drift(self) -> Mapping[int, Sequence[str]]:
        """The differences of calls from their recording, by call."""
        found = {self.number_of(number): entry.drift for number, entry in self._entries.items() if entry.drift}
        return {call: drift for call, drift in found.items() if call is not None}

    def is_open(self, call: int | None) -> bool:
        """Whether a call has no answer yet."""
        if call is None or not self.debugger.annotated.timeline.has(call):
            return False
        made = self.debugger.annotated.timeline.step(call).call
        return made.response is None and made.ended is None

    # -- for the commands ------------------------------------------------------------------------------------------

    def find(self, number: int | None, doing: str) -> PendingCall:
        """The held call with a number; without one, the call at the current stop, or the only held call.

        Raises UsageError, which names the command `doing`.
        """
        if number is not None:
            for one in self.pending:
                if one.number == number:
                    return one
            raise UsageError(f"call {number} is not held; {self.which_wait()}")
        if not self.pending:
            raise UsageError(f"{doing} needs a held call, and no call is held: {self.how_to_hold()}")
        here = [one for one in self.pending if one.number == self.debugger.here.call]
        if here or len(self.pending) == 1:
            return (here or self.pending)[0]
        raise UsageError(f"{self.which_wait()}: name one, such as {doing} {self.pending[0].number}")

    def which_wait(self) -> str:
        if not self.pending:
            return "no call is held"
        calls = wording.numbered("call", [call.number for call in self.pending])
        return f"{calls} {'is' if len(self.pending) == 1 else 'are'} held"

    def how_to_hold(self) -> str:
        if self.exit_code is not None:
            return "the program has ended"
        if not self.running:
            return "set breakpoints with break, and start the program with continue"
        return "set breakpoints with break, or hold the next call with step"

    def change(self, call: PendingCall, answer: Exchange) -> PendingCall:
        """Replace the answer of a held call."""
        entry = self._entries[call.exchange.number]
        if call.answered:
            self.answer_known(answer)
            changed = replace(call, exchange=answer, edited=True)
        else:
            entry.recorded = answer
            changed = replace(call, recorded=answer, edited=True)
        self.pending[self.pending.index(call)] = changed
        return changed

    def show(self, call: PendingCall) -> PendingCall:
        """Mark a held call as shown to the user."""
        shown = replace(call, shown=True)
        self.pending[self.pending.index(call)] = shown
        return shown

    def release(self, call: PendingCall, decision: Decision) -> None:
        """Release a held call with the user's decision."""
        self.pending.remove(call)
        entry = self._entries[call.exchange.number]
        release, entry.release = entry.release, None
        if release is not None:
            release(decision)

    def start_program(self) -> None:
        if not self.running and self.exit_code is None:
            self.running = True
            self.start()

    def warnings(self) -> list[str]:
        """Warnings about calls whose clients may time out soon, each once."""
        found, now = [], self.clock()
        for one in self.pending:
            if one.client_timeout is None:
                continue
            key = (one.exchange.number, one.stop.phase)
            waited = now - one.since
            if waited >= min(WARN_AFTER, one.client_timeout / 2) and key not in self._warned:
                self._warned.add(key)
                found.append(
                    f"call {one.number} ({one.agent}) has been held for {waited:.0f} s; "
                    f"its client may time out after {one.client_timeout:g} s"
                )
        return found


class _Exchanges(Mapping[int, Exchange]):
    def __init__(
        self, entries: Mapping[int, _Entry], connections: Mapping[int, tuple[Exchange, Sequence[WsMessage]]]
    ) -> None:
        self._entries, self._connections = entries, connections

    def __getitem__(self, number: int) -> Exchange:
        if number in self._connections:
            exchange, messages = self._connections[number]
            return replace(exchange, messages=tuple(messages))
        return self._entries[number].exchange

    def __iter__(self) -> Iterator[int]:
        return chain(self._connections, (number for number in self._entries if number not in self._connections))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _needs_result(point: Breakpoint) -> bool:
    return any(name.name in ("result", "tool_error") for name in names_in(point.expression))
