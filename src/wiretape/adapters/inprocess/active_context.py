"""The open contexts of this process, and the rules that assign a request to one of them.

Patches apply to the whole process. Threads and tasks that are started inside a context belong to it. A request belongs
to the innermost context around the code that sends it. If that is unknown (its thread was started earlier), the request
belongs to the innermost open context, provided that exactly one is open.
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
    """A recording or replaying context. The patches call these methods for each request, connection and process."""

    outer: ActiveContext | None = None
    is_open = False
    name = ""
    pace: float = 0
    records_misses = False  # a replaying context that sends misses to the network and records them

    def __init__(self) -> None:
        self.lock = threading.RLock()  # the program's threads share the context

    @property
    def replays(self) -> bool:
        return False

    # of a recording context

    def begin_exchange(self, method: str, url: str, headers: Iterable[tuple[str, str]]) -> ExchangeRecorder | None:
        """Begin to record a request; None for hosts that are not recorded."""
        return None

    def begin_tool_call(self, name: str, arguments: Json) -> ToolCallRecorder | None:
        """Begin to record a call of a wrapped tool."""
        return None

    # of a replaying context

    def passes(self, host: str, port: int, count: bool) -> bool:
        """True if this host is allowed. `count`: report a request to it."""
        return False

    def tool_answer(self, name: str, arguments: Json) -> ToolAnswer | None:
        """The recorded result of a wrapped tool; None if the tool must run."""
        return None

    def answer(self, request: LiveRequest) -> Playback:
        """The recorded answer, or the answer that reports a miss."""
        raise NotImplementedError

    def recorded_answer(self, request: LiveRequest) -> Playback | None:
        """As `answer`; None if the request must be sent to its host (see `records_misses`)."""
        return self.answer(request)

    def call_live(self, request: LiveRequest) -> Playback:
        """Send a request to its host and return the whole answer, for patches that cannot send it themselves."""
        raise NotImplementedError

    def open_socket(self, request: LiveRequest) -> SocketPlay | Playback:
        """The recorded WebSocket that answers this handshake, or the answer that refuses the handshake."""
        raise NotImplementedError

    # of any context

    def refusal(self, host: str, names: frozenset[str], port: int | None) -> str | None:
        """Why an unpatched library may not connect to a host, which is known by these names; None if it may."""
        return None

    def note_connection(self, host: str, names: frozenset[str], port: int | None) -> None:
        """A library, patched or not, connects to a host."""

    def child_variables(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The variables that route a child process with this environment to this context; empty: do not change it."""
        return {}

    def before_fork(self) -> None:
        """Called before this process forks."""

    def after_fork(self) -> None:
        """Called in the forked copy. Another thread may have held the lock when the process forked."""
        self.lock = threading.RLock()


@dataclass(frozen=True, slots=True)
class RequestRoute:
    """The context that records a request and the context whose tape answers it. One of them may be None."""

    recording: ActiveContext | None
    replaying: ActiveContext | None

    def begin_exchange(self, method: str, url: str, headers: Iterable[tuple[str, str]]) -> ExchangeRecorder | None:
        return self.recording.begin_exchange(method, url, headers) if self.recording is not None else None


_here: ContextVar[ActiveContext | None] = ContextVar("wiretape.context", default=None)
_open: list[ActiveContext] = []
_lock = threading.Lock()
# Set by the pytest plugin: the context of code that was started by a test which has ended.
late_context: Callable[[], ActiveContext | None] | None = None


def enter(context: ActiveContext) -> None:
    with _lock:
        context.outer = _enclosing()
        context.is_open = True
        _open.append(context)
    _here.set(context)


def leave(context: ActiveContext) -> None:
    with _lock:
        context.is_open = False
        _open.remove(context)
    _here.set(_enclosing())


def enclosing_context() -> ActiveContext | None:
    """The context around the caller, for `use_context`. It may have ended; None if it is unknown."""
    return _here.get()


@contextmanager
def use_context(context: ActiveContext | None) -> Iterator[None]:
    """Run a block in a context that was saved by `enclosing_context`."""
    token = _here.set(context)
    try:
        yield
    finally:
        _here.reset(token)


def before_fork() -> None:
    """Prepare all contexts for a fork. Fork hooks are unsuitable: the hooks of other libraries already hold locks."""
    for context in tuple(_open):
        context.before_fork()


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()
    for context in _open:
        context.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def route_for(host: str, port: int, count: bool = True) -> RequestRoute | None:
    """The route of a request that is sent here; None: send it as if nothing were patched.

    `count`: report the request if its host is allowed.
    """
    context = _known() or _only()
    if context is None:
        return None
    recording = None if context.replays else context
    context = enclosing_replay(context)
    if context is not None and context.passes(host, port, count):
        context = None
    return RequestRoute(recording, context) if recording is not None or context is not None else None


def active_contexts() -> tuple[ActiveContext | None, ActiveContext | None]:
    """The context that records a tool call made here, and the context whose tape answers it."""
    context = _known() or _only()
    recording = context if context is not None and not context.replays else None
    context = enclosing_replay(context)
    if context is not None and recording is None and context.records_misses:
        recording = context
    return recording, context


def innermost() -> list[ActiveContext]:
    """The contexts that the caller may belong to: exactly one if it is known."""
    context = _known()
    return [context] if context is not None else _side_by_side()


def child_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables for a child process that is started here: from the innermost context that has any.

    A thread of unknown context may be inside any of several. Each of them is better than the network.
    """
    context: ActiveContext | None = next(iter(innermost()), None)
    while context is not None:
        if context.is_open and (variables := context.child_variables(environ)):
            return variables
        context = context.outer
    return {}


def enclosing_replay(context: ActiveContext | None) -> ActiveContext | None:
    """The innermost context that replays: this one, or one around it."""
    while context is not None and not (context.is_open and context.replays):
        context = context.outer
    return context


def _known() -> ActiveContext | None:
    """The innermost context that is known to be around the caller."""
    context = _enclosing()
    return late_context() if context is None and late_context is not None else context


def _enclosing() -> ActiveContext | None:
    context = _here.get()
    while context is not None and not context.is_open:
        context = context.outer
    return context


def _only() -> ActiveContext | None:
    """The innermost context of the process. MissInterrupt: several replays are open, and any of them may be meant."""
    contexts = _side_by_side()
    if len(contexts) <= 1:
        return contexts[0] if contexts else None
    names = " and ".join(context.name for context in contexts)
    if not any(context.replays for context in contexts):
        return None  # two recordings are open: a request of neither must not be disturbed
    raise MissInterrupt(
        f"{names} are open at the same time, and this thread was started outside of them\n"
        "  start the thread inside its context, or open one context after the other"
    )


def _side_by_side() -> list[ActiveContext]:
    """The open contexts that have no other inside them."""
    with _lock:
        around = [context.outer for context in _open]
        return [context for context in _open if context not in around]
