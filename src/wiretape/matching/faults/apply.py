"""Injected faults: which attempts get them, and how they change a playback.

`specs` parses `--fault`, `targets` resolves it to recorded calls (`FaultPlan`), and `apply_faults` changes the playback
that adapters send. Nothing depends on chance or on the clock.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias, assert_never

import orjson

from wiretape.model.faults import Cut, Effect, ErrorStatus, Reset, Slow, Stall, breaks, stalls
from wiretape.model.http import BytesBody, Headers, Response

if TYPE_CHECKING:
    from wiretape.matching.playback import Chunk, Playback
    from wiretape.wire.base import WireFormat

FOREVER_MS: Final = 24 * 3600 * 1000.0  # longer than any client waits
ON_COMMAND_LINE: Final = "--fault {}"
IN_PYTHON: Final = 'faults=["{}"]'
IN_DEBUGGER: Final = "in the debugger"
FAULT_CODE: Final = "wiretape_fault"  # the error code of what wiretape injects


@dataclass(frozen=True, slots=True)
class AtCall:
    number: int


@dataclass(frozen=True, slots=True)
class AtTool:
    """The calls whose recorded answer calls this tool."""

    name: str


@dataclass(frozen=True, slots=True)
class AtAgent:
    """All calls of this agent."""

    name: str


@dataclass(frozen=True, slots=True)
class Everywhere:
    """All model calls."""


Target: TypeAlias = AtCall | AtTool | AtAgent | Everywhere


@dataclass(frozen=True, slots=True)
class Fault:
    """One `--fault`, or one of `faults=[…]`: the effect, the target calls, and the number of attempts of each.

    `spec`: as given. `handshake`: refuse the handshake of the call's WebSocket.
    `written`: the option or argument around the spec, with `{}` in its place.
    """

    spec: str
    effect: Effect
    target: Target
    times: int = 1
    handshake: bool = False
    written: str = ON_COMMAND_LINE

    @property
    def named(self) -> str:
        """The fault as given: `--fault 429@3`, `faults=["429@3"]`."""
        return self.written.format(self.spec)

    @property
    def stalls(self) -> bool:
        """Whether the answer never continues."""
        return stalls(self.effect)

    @property
    def breaks(self) -> bool:
        """Whether it replaces the answer, which is then left for the next attempt."""
        return breaks(self.effect)


class FaultPlan:
    """The faults of each recorded call. An attempt gets the next one that breaks the answer, else all that delay it."""

    __slots__ = ("_aimed", "_injected", "_left")

    def __init__(self, aimed: Mapping[Hashable, Sequence[Fault]]) -> None:
        """`aimed`: the faults by recorded call: by order for HTTP, by `call_key` for a WebSocket."""
        self._aimed = {order: tuple(faults) for order, faults in aimed.items()}
        self._left = {order: [fault.times for fault in faults] for order, faults in self._aimed.items()}
        self._injected: set[Fault] = set()

    def next(self, order: Hashable) -> tuple[Fault, ...]:
        """The faults of the next attempt."""
        faults = self._aimed.get(order, ())
        if not faults:
            return ()
        left = self._left.get(order, [])
        due = [position for position, fault in enumerate(faults) if left[position] > 0]
        breaking = next((position for position in due if faults[position].breaks), None)
        if breaking is not None:
            due = [breaking]
        for position in due:
            left[position] -= 1
            self._injected.add(faults[position])
        return tuple(faults[position] for position in due)

    def delayed(self, order: Hashable) -> bool:
        """Whether a fault delayed this call's answer, so that a client may retry after a timeout."""
        faults, left = self._aimed.get(order, ()), self._left.get(order, [])
        return any(not fault.breaks and n < fault.times for fault, n in zip(faults, left, strict=True))

    @property
    def not_injected(self) -> list[Fault]:
        """The faults that no attempt got, in the order given."""
        every = dict.fromkeys(fault for faults in self._aimed.values() for fault in faults)
        return [fault for fault in every if fault not in self._injected]


def provider_error(form: WireFormat | None, status: int, message: str, code: str) -> tuple[Headers, bytes]:
    """The headers and the body of an error, in the provider's shape."""
    if form is not None:
        return form.error(status, message, code)
    body = orjson.dumps({"error": {"message": message, "type": "invalid_request_error", "code": code}})
    return Headers([("content-type", "application/json")]), body


def error_response(form: WireFormat | None, effect: ErrorStatus, named: str, at: int) -> Response:
    """An injected error in the provider's shape. `named`: who injects it, such as `--fault 429@3`."""
    headers, body = provider_error(form, effect.status, f"injected by wiretape ({named})", FAULT_CODE)
    return Response(effect.status, Headers([*headers.pairs(), *effect.headers]), at, BytesBody(body))


def paced(milliseconds: float, pace: float) -> float:
    """A pause at a pace, limited to what timers accept."""
    return min(max(0, milliseconds) * pace, FOREVER_MS) if pace > 0 else 0


def slowed(pace: float, faults: Sequence[Fault]) -> float:
    """The pace of an answer with its slow faults, which multiply the recorded pauses if the pace is 0."""
    for fault in faults:
        if isinstance(fault.effect, Slow):
            pace = (pace or 1) * fault.effect.factor
    return pace


def apply_faults(playback: Playback, faults: Sequence[Fault]) -> Playback:
    """The playback with its faults."""
    for fault in faults:
        playback = _marred(playback, fault.effect)
    return playback


def _marred(playback: Playback, effect: Effect) -> Playback:
    match effect:
        case ErrorStatus() | Slow():
            return playback  # an error status replaces the answer, and `slowed` applies slowness
        case Reset(event=None):
            return replace(playback, status=None, headers=(), pieces=(), streamed=False, cut=True, reset=True)
        case Cut(event=event) | Reset(event=event):
            return _broken_off(playback, event, reset=isinstance(effect, Reset))
        case Stall(event=None, ms=ms):
            return replace(playback, pause=playback.pause + (FOREVER_MS if ms is None else ms))
        case Stall(event=event, ms=ms):
            return _stalled(playback, event or 0, ms)
        case _:
            assert_never(effect)


def _broken_off(playback: Playback, event: int | None, reset: bool) -> Playback:
    if playback.status is None:
        return replace(playback, reset=reset)
    playback = _in_pieces(playback)
    at = _place(playback.pieces, count_events(playback.pieces) // 2 if event is None else event)
    return replace(playback, pieces=playback.pieces[:at], cut=True, linger=False, reset=reset)


def _stalled(playback: Playback, event: int, ms: float | None) -> Playback:
    if playback.status is None:
        return replace(playback, pause=playback.pause + (FOREVER_MS if ms is None else ms))
    playback = _in_pieces(playback)
    at = _place(playback.pieces, event)
    before, after = list(playback.pieces[:at]), list(playback.pieces[at:])
    if ms is None:
        waits = replace(playback.pieces[0], pause=FOREVER_MS, data=b"") if playback.pieces else None
        return replace(playback, pieces=[*before, *([waits] if waits else [])], cut=True)
    if not after:  # the end of the answer is late
        after = [replace(before[-1], pause=0.0, data=b"")] if before else []
    late = [replace(piece, pause=piece.pause + (0 if n else ms)) for n, piece in enumerate(after)]
    return replace(playback, pieces=[*before, *late])


def _in_pieces(playback: Playback) -> Playback:
    """A body that is not streamed, in two halves: the first half counts as its only event."""
    if playback.streamed:
        return playback
    data = b"".join(piece.data for piece in playback.pieces)
    if not playback.pieces:
        return replace(playback, streamed=True)
    half = len(data) // 2
    halves = [replace(playback.pieces[0], data=data[:half]), replace(playback.pieces[0], pause=0.0, data=data[half:])]
    headers = [(name, value) for name, value in playback.headers if name != "content-length"]
    return replace(playback, headers=headers, pieces=halves, streamed=True)


def _place(pieces: Sequence[Chunk], event: int) -> int:
    """The number of chunks up to the end of an event."""
    seen = 0
    for position, piece in enumerate(pieces):
        if seen == event:
            return position
        seen += is_event(piece.data)
    return len(pieces)


def count_events(pieces: Sequence[Chunk]) -> int:
    return sum(is_event(piece.data) for piece in pieces)


def is_event(frame: bytes) -> bool:
    """Whether a frame is an event, not a keep-alive comment."""
    return bool(frame.strip()) and not frame.startswith(b":")
