"""A program at work under the debugger: its calls as they come, which of them wait, and what ended.

Sans-IO. Doors tell of calls (`begin`, `ask`, `answered`, `over`), and ask where to hold them; commands decide. The run
that the debugger walks is put together anew when somebody looks and there is news. Not thread-safe: whoever owns it
calls it under one lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Literal, Protocol

from wiretape.debug.annotated_run import World
from wiretape.debug.breakpoints import Breakpoint, Breakpoints
from wiretape.debug.expression.expression import names_in
from wiretape.debug.live.pending_calls import (
    MOST_OUTPUT,
    WARN_AFTER,
    Decision,
    Held,
    Line,
    Means,
    Mode,
    Release,
    Stepping,
    Way,
)
from wiretape.debug.timeline import Stop
from wiretape.errors import UsageError
from wiretape.model.call import ModelCall
from wiretape.model.http import Exchange, WsMessage
from wiretape.model.run import Run
from wiretape.runs.run import build_run
from wiretape.wire.base import Memo
from wiretape.wire.registry import Registry, default_registry, numbered


class WalkedRun(Protocol):
    """The parts of a debugger's state that a live program reads and extends."""

    world: World
    breakpoints: Breakpoints

    @property
    def here(self) -> Stop: ...
    def grow(self, run: Run) -> None: ...


@dataclass(slots=True)
class _Entry:
    """A call that came. `told`: its model call, where that is known from elsewhere (one of a WebSocket's); then the
    number of `exchange` is only what a door calls it by, and the call names the exchange that it is a part of."""

    exchange: Exchange
    patience: float | None = None
    told: ModelCall | None = None
    recorded: Exchange | None = None
    ways: frozenset[Way] = frozenset()
    miss: str = ""
    drift: tuple[str, ...] = ()
    release: Release | None = None
    calls: tuple[ModelCall, ...] | None = None


@dataclass(slots=True)
class Live:
    """One program. `start` sets it going, `stop` ends it; `expected` is the run that it is replayed against."""

    debugger: WalkedRun
    mode: Mode
    clock: Callable[[], float]
    means: Means
    start: Callable[[], None] = lambda: None
    stop: Callable[[], None] = lambda: None
    expected: Run | None = None
    registry: Registry = field(default_factory=default_registry)
    held: list[Held] = field(default_factory=list)
    output: deque[Line] = field(default_factory=lambda: deque(maxlen=MOST_OUTPUT))
    stepping: Stepping | None = None  # where the program is to be held next, breakpoints apart
    free: bool = False  # nothing is held any more
    running: bool = False
    code: int | None = None  # the program's exit code, once it has ended
    kept_in: str = ""  # the tape that keeps what real models answer in a replay
    problem: str = ""  # what could not be done with a call that was let go
    _entries: dict[int, _Entry] = field(default_factory=dict)
    _connections: dict[int, tuple[Exchange, Sequence[WsMessage]]] = field(default_factory=dict)
    _numbers: dict[int, int] = field(default_factory=dict)  # entry -> call
    _memo: Memo = field(default_factory=Memo)
    _news: bool = False
    _settled: int | None = None  # the exchange whose answer went out last
    _warned: set[tuple[int, str]] = field(default_factory=set)

    # -- what a door tells -----------------------------------------------------------------------------------------

    def begin(self, exchange: Exchange, patience: float | None = None, told: ModelCall | None = None) -> None:
        """A call has come: its request, as an exchange that is open."""
        self._entries[exchange.number] = _Entry(exchange, patience, told)
        self._news = True

    def connected(self, exchange: Exchange, messages: Sequence[WsMessage]) -> None:
        """A WebSocket whose calls are told of one by one. `messages` grows with it."""
        self._connections[exchange.number] = exchange, messages

    def propose(
        self,
        number: int,
        ways: frozenset[Way],
        recorded: Exchange | None = None,
        miss: str = "",
        drift: Sequence[str] = (),
    ) -> None:
        """What may be done with a call, and what it would be answered with."""
        entry = self._entries[number]
        entry.ways, entry.recorded, entry.miss, entry.drift = ways, recorded, miss, tuple(drift)

    def ask(self, number: int, release: Release) -> bool:
        """Whether a call is held at this stop: before its request, or with its answer if that is known."""
        if self.free or not self._watchful(number):
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
        """A call waits from now on."""
        entry = self._entries[number]
        entry.release = release
        call = self.number_of(number)
        assert call is not None, "only model calls are held"
        phase: Literal["request", "answer"] = "request" if entry.exchange.response is None else "answer"
        step = self.debugger.world.line.step(call)
        self.held.append(
            Held(
                number=call,
                stop=stop or Stop(phase, call),
                agent=self.debugger.world.line.run.agents[step.agent].name,
                exchange=entry.exchange,
                recorded=entry.recorded,
                since=self.clock(),
                ways=entry.ways,
                reason=reason,
                patience=entry.patience,
                miss=entry.miss if phase == "request" else "",
            )
        )
        self.stepping = None

    def asked_anew(self, exchange: Exchange) -> None:
        """The request of a call is another now."""
        self._entries[exchange.number].exchange = exchange
        self._changed(exchange.number)

    def answered(
        self,
        exchange: Exchange,
        ways: frozenset[Way] | None = None,
        drift: Sequence[str] | None = None,
        told: ModelCall | None = None,
    ) -> None:
        """The answer to a call is known; it has not gone out yet. `told`: the call, as for `begin`."""
        entry = self._entries.setdefault(exchange.number, _Entry(exchange))
        entry.exchange = exchange
        entry.told = told or entry.told
        entry.drift = entry.drift if drift is None else tuple(drift)
        entry.ways = entry.ways if ways is None else ways
        self._changed(exchange.number)

    def over(self, number: int) -> None:
        """What the program gets of a call is settled."""
        self._unhold(number)
        self._settled = number

    def answering(self, number: int) -> None:
        """An answer begins to go out. May be told without the lock."""
        self._settled = number

    def gone(self, number: int) -> None:
        """The program hung up."""
        self._unhold(number)

    def ended(self, code: int) -> None:
        self.code, self.running = code, False
        self.held.clear()

    def _changed(self, number: int) -> None:
        self._entries[number].calls = None
        self._news = True

    def _unhold(self, number: int) -> None:
        self.held = [one for one in self.held if one.exchange.number != number]

    # -- where to hold ---------------------------------------------------------------------------------------------

    def _watchful(self, number: int) -> bool:
        """Whether anything could hold this call: if nothing can, nothing is worked out."""
        return bool(self.stepping or self._entries[number].miss or self._points())

    @property
    def may_hold_answers(self) -> bool:
        """Whether an answer may have to wait once it is known: only then it must be held back until it is whole."""
        if self.free:
            return False
        stepping = self.stepping is not None and self.stepping.answers
        return stepping or any(point.phase != "request" for point in self._points())

    @property
    def may_hold(self) -> bool:
        return not self.free and bool(self.stepping or self._points())

    def _points(self) -> list[Breakpoint]:
        return [point for point in self.debugger.breakpoints.points if point.enabled]

    def _request_stop(self, number: int, call: int) -> tuple[Stop, str] | None:
        stop = Stop("request", call)
        if self._entries[number].miss:
            return stop, "no recorded call answers it"
        if self._stops_at(stop):
            return stop, ""
        told = [point for point in self._points() if _asks_for_result(point)]
        for use in self.debugger.world.line.run.tool_uses if told else ():
            at = Stop("tool", use.call_number, use.index)
            if use.result_call != call:
                continue
            hit = next((p for p in told if self.debugger.breakpoints.matches(p, self.debugger.world, at)), None)
            if hit is not None:
                return stop, f"breakpoint {hit.number}: {hit.text} (the result of {use.call.name} in call {at.call})"
        return None

    def _answer_stop(self, call: int) -> tuple[Stop, str] | None:
        line = self.debugger.world.line
        stops = [Stop("answer", call), *(Stop("tool", call, use.index) for use in line.uses(call))]
        return next(((stop, "") for stop in stops if self._stops_at(stop)), None)

    def _stops_at(self, stop: Stop) -> bool:
        if self.stepping is not None and self.stepping.at(stop):
            return True
        return self.debugger.breakpoints.hit_at(self.debugger.world, stop)

    # -- the run ---------------------------------------------------------------------------------------------------

    def refresh(self) -> bool:
        """Let the debugger see what has happened. Whether there was anything new."""
        if not self._news:
            return False
        self._news = False
        calls = [call for entry in self._entries.values() for call in self._calls_of(entry)]
        made = numbered(calls, [entry.exchange for entry in self._entries.values() if entry.told is None])
        parts = {(e.told.exchange, e.told.part): number for number, e in self._entries.items() if e.told is not None}
        self._numbers = {}
        for call in made:
            self._numbers.setdefault(parts.get((call.exchange, call.part), call.exchange), call.number)
        others = [number for number in self._entries if number not in self._numbers]
        self.debugger.grow(build_run(made, others))
        return True

    def _calls_of(self, entry: _Entry) -> tuple[ModelCall, ...]:
        if entry.told is not None:
            return (entry.told,)
        if entry.calls is None:
            entry.calls = self.registry.calls_of(entry.exchange, self._memo)
        return entry.calls

    def number_of(self, exchange: int) -> int | None:
        """The number of the call that an exchange is; None: it is no model call."""
        self.refresh()
        return self._numbers.get(exchange)

    @property
    def last_answered(self) -> int | None:
        """The call whose answer the program got last."""
        return self.number_of(self._settled) if self._settled is not None else None

    @property
    def exchanges(self) -> Mapping[int, Exchange]:
        """Every exchange as it is now; this grows with the run. A WebSocket is one, however many calls it carries."""
        return _Exchanges(self._entries, self._connections)

    def drifts(self) -> Mapping[int, Sequence[str]]:
        """How calls strayed from their recording."""
        found = {self.number_of(number): entry.drift for number, entry in self._entries.items() if entry.drift}
        return {call: drift for call, drift in found.items() if call is not None}

    def is_open(self, call: int | None) -> bool:
        """Whether a call has no answer yet."""
        if call is None or not self.debugger.world.line.has(call):
            return False
        made = self.debugger.world.line.step(call).call
        return made.response is None and made.ended is None

    # -- what a person decides -------------------------------------------------------------------------------------

    def find(self, number: int | None, doing: str) -> Held:
        """The held call that is meant: the one of this number, else where one stands, else the only one."""
        if number is not None:
            for one in self.held:
                if one.number == number:
                    return one
            raise UsageError(f"call {number} is not held; {self.who_waits()}")
        if not self.held:
            raise UsageError(f"{doing} needs a call that is held, and none is: {self.how_to_hold()}")
        here = [one for one in self.held if one.number == self.debugger.here.call]
        if here or len(self.held) == 1:
            return (here or self.held)[0]
        raise UsageError(f"{self.who_waits()}: say which, such as {doing} {self.held[0].number}")

    def who_waits(self) -> str:
        if not self.held:
            return "no call is held"
        numbers = ", ".join(str(one.number) for one in self.held)
        return f"call {numbers} is held" if len(self.held) == 1 else f"calls {numbers} are held"

    def how_to_hold(self) -> str:
        if self.code is not None:
            return "the program has ended"
        if not self.running:
            return "continue starts the program, and break says where to hold it"
        return "break says where, and step holds the very next call"

    def change(self, held: Held, answer: Exchange) -> Held:
        """A held call has another answer from now on."""
        entry = self._entries[held.exchange.number]
        if held.answered:
            self.answered(answer)
            changed = replace(held, exchange=answer, edited=True)
        else:
            entry.recorded = answer
            changed = replace(held, recorded=answer, edited=True)
        self.held[self.held.index(held)] = changed
        return changed

    def show(self, held: Held) -> Held:
        """The person is told of a held call."""
        shown = replace(held, shown=True)
        self.held[self.held.index(held)] = shown
        return shown

    def let_go(self, held: Held, decision: Decision) -> None:
        """Carry out what was decided."""
        self.held.remove(held)
        entry = self._entries[held.exchange.number]
        release, entry.release = entry.release, None
        if release is not None:
            release(decision)

    def set_going(self) -> None:
        if not self.running and self.code is None:
            self.running = True
            self.start()

    def warnings(self) -> list[str]:
        """What is to be said of calls that wait long, each once."""
        found, now = [], self.clock()
        for one in self.held:
            if one.patience is None:
                continue
            key = (one.exchange.number, one.stop.phase)
            waited = now - one.since
            if waited >= min(WARN_AFTER, one.patience / 2) and key not in self._warned:
                self._warned.add(key)
                found.append(
                    f"call {one.number} ({one.agent}) has waited {waited:.0f} s; "
                    f"its client may give up after {one.patience:g} s"
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


def _asks_for_result(point: Breakpoint) -> bool:
    return any(name.name in ("result", "tool_error") for name in names_in(point.expression))
