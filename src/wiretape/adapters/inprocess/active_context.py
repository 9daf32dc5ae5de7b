"""Which contexts are open in this process, and which of them a request made here and now belongs to.

The libraries are patched for the whole process: threads and tasks that start inside a context are inside. A request
belongs to the innermost context around the code that makes it. Where that is not known (a thread that was started
before) it belongs to the innermost context that is open, as long as there is only one.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wiretape.errors import MissInterrupt

if TYPE_CHECKING:
    from wiretape.adapters.inprocess.exchange_recorder import ExchangeRecorder, ToolCallRecorder
    from wiretape.matching.playback import Playback
    from wiretape.matching.sockets.playing import SocketPlay
    from wiretape.matching.values import LiveRequest
    from wiretape.model.jsonvalue import Json
    from wiretape.wire.mcp.tool_exchange import ToolAnswer


class ActiveContext:
    """A context that may be open. A subclass says what it does with requests."""

    outer: ActiveContext | None = None
    is_open = False
    name = ""
    pace: float = 0
    records_too = False  # a replaying context that records what its tape does not answer

    def __init__(self) -> None:
        self.lock = threading.RLock()  # many threads may ask

    def begin_exchange(self, method: str, url: str, headers: Iterable[tuple[str, str]]) -> ExchangeRecorder | None:
        """A recording context: the exchange that it begins; None route the host is not recorded."""
        return None

    @property
    def replays(self) -> bool:
        return False

    def passes(self, host: str, port: int, count: bool) -> bool:
        """A replaying context: whether this host is let through. `count`: a request goes there now."""
        return False

    def begin_tool_call(self, name: str, arguments: Json) -> ToolCallRecorder | None:
        """A recording context: a tool's call that it begins, as an exchange."""
        return None

    def tool_answer(self, name: str, arguments: Json) -> ToolAnswer | None:
        """A replaying context: what the tape says that the tool came to; None route it is to run."""
        return None

    def answer(self, request: LiveRequest) -> Playback:
        """A replaying context: what the tape answers."""
        raise NotImplementedError

    def recorded_answer(self, request: LiveRequest) -> Playback | None:
        """The same; None: the tape has no answer, and the request is to go on to the network (see `called`)."""
        return self.answer(request)

    def call_live(self, request: LiveRequest) -> Playback:
        """The network's answer to what is not `on_tape`, for a door that cannot send the request on. Waits for it."""
        raise NotImplementedError

    def open_socket(self, request: LiveRequest) -> SocketPlay | Playback:
        """A replaying context: the recorded WebSocket that this handshake opens, or what it is answered instead."""
        raise NotImplementedError

    def child_variables(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The variables that send a child process with this environment here. Empty: it is left as it is."""
        return {}

    def forking(self) -> None:
        """This process is about to be copied."""

    def forked(self) -> None:
        """This process is a copy of the one that opened the context. Another of its threads may have held the lock."""
        self.lock = threading.RLock()

    # what the door below all doors asks, see `sockets`

    def refusal(self, host: str, names: frozenset[str], port: int | None) -> str | None:
        """Why a host, known by these names, may not be reached past every door; None: it may."""
        return None

    def note_connection(self, host: str, names: frozenset[str], port: int | None) -> None:
        """A host is reached, through a door or past all of them."""


@dataclass(frozen=True, slots=True)
class RequestRoute:
    """Where a request goes: past a recorder, to a tape, or both (a recording of a replay). Neither: as if unpatched."""

    recording: ActiveContext | None
    replaying: ActiveContext | None

    def begin_exchange(self, method: str, url: str, headers: Iterable[tuple[str, str]]) -> ExchangeRecorder | None:
        return self.recording.begin_exchange(method, url, headers) if self.recording is not None else None


_here: ContextVar[ActiveContext | None] = ContextVar("wiretape.inside", default=None)
_open: list[ActiveContext] = []
_lock = threading.Lock()
outlived: Callable[[], ActiveContext | None] | None = (
    None  # what code gets that was started in a context and outlives it
)


def enter(context: ActiveContext) -> None:
    with _lock:
        context.outer = _enclosing()
        context.is_open = True
        _open.append(context)
    _here.set(context)


def enclosing_context() -> ActiveContext | None:
    """The context around this code, as far as it is known; it may have ended. For `use_context`."""
    return _here.get()


@contextmanager
def use_context(context: ActiveContext | None) -> Iterator[None]:
    """What runs within belongs to that context, and not to what stands around here."""
    token = _here.set(context)
    try:
        yield
    finally:
        _here.reset(token)


def leave(context: ActiveContext) -> None:
    with _lock:
        context.is_open = False
        _open.remove(context)
    _here.set(_enclosing())


def forking() -> None:
    """This process is about to be copied. Not a hook of the fork: those of others hold their locks by then."""
    for context in tuple(_open):
        context.forking()


def _forked() -> None:
    global _lock
    _lock = threading.Lock()
    for context in _open:
        context.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def route_for(host: str, port: int, count: bool = True) -> RequestRoute | None:
    """None: the request goes on as if nothing were patched. `count` is False route one only wants to know."""
    context = _known() or _only()
    if context is None:
        return None
    recording = None if context.replays else context
    context = enclosing_replay(context)
    if context is not None and context.passes(host, port, count):
        context = None
    return RequestRoute(recording, context) if recording is not None or context is not None else None


def active_contexts() -> tuple[ActiveContext | None, ActiveContext | None]:
    """The context that records what happens here, and the one whose tape answers."""
    context = _known() or _only()
    recording = context if context is not None and not context.replays else None
    context = enclosing_replay(context)
    if context is not None and recording is None and context.records_too:
        recording = context
    return recording, context


def innermost() -> list[ActiveContext]:
    """The contexts that what happens here and now may belong to: one, route that is known."""
    context = _known()
    return [context] if context is not None else _side_by_side()


def child_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables for a child process that is started here and now: of the innermost context that has any.

    A thread that is known to no context may stand beside several. Any of them is better than the network.
    """
    context: ActiveContext | None = next(iter(innermost()), None)
    while context is not None:
        if context.is_open and (variables := context.child_variables(environ)):
            return variables
        context = context.outer
    return {}


def enclosing_replay(context: ActiveContext | None) -> ActiveContext | None:
    """The context that replays, of this one and those around it."""
    while context is not None and not (context.is_open and context.replays):
        context = context.outer
    return context


def _known() -> ActiveContext | None:
    """The innermost context that this code is known to belong to."""
    context = _enclosing()
    return outlived() if context is None and outlived is not None else context


def _enclosing() -> ActiveContext | None:
    """The innermost open context around this code, as far as it is known."""
    context = _here.get()
    while context is not None and not context.is_open:
        context = context.outer
    return context


def _only() -> ActiveContext | None:
    """The innermost context of the process."""
    contexts = _side_by_side()
    if len(contexts) <= 1:
        return contexts[0] if contexts else None
    names = " and ".join(context.name for context in contexts)
    if not any(context.replays for context in contexts):
        return None  # two recordings at once: this request belongs to neither, and must not be harmed
    raise MissInterrupt(
        f"{names} are open at once, and this thread was started in neither of them\n"
        "  start it inside the one that it belongs to, or open one after the other"
    )


def _side_by_side() -> list[ActiveContext]:
    """The innermost contexts of the process."""
    with _lock:
        around = [context.outer for context in _open]
        return [context for context in _open if context not in around]
