"""What answers the child processes of a replay: a replay server on loopback ports that shares the replay's session."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from wiretape.adapters.opening import authority
from wiretape.adapters.replaying import Replaying
from wiretape.errors import UsageError
from wiretape.replay.session import ReplaySession
from wiretape.replay.sockets import SocketPlay
from wiretape.replay.values import LiveRequest, Miss, Outcome

if TYPE_CHECKING:
    from wiretape.adapters.context_replay import Replay


@dataclass(frozen=True, slots=True)
class Children:
    """Where child processes are sent: `variables` come on top of an environment, `ports` are those that they name."""

    ports: Callable[[], Collection[int]]
    variables: Callable[[Mapping[str, str]], dict[str, str]]


@contextmanager
def replaying_children(replay: Replay, pass_hosts: Sequence[str]) -> Iterator[Children]:
    """A replay server that shares its session with this process. It opens TLS where mitmproxy is installed."""
    shared = cast(ReplaySession, _Shared(replay))
    try:
        opened, why_closed = authority(os.environ), ""
    except UsageError as error:
        opened, why_closed = None, f"  TLS of child processes is not opened: {error}"
    with Replaying(
        shared, let_through=pass_hosts, lock=replay.lock, authority=opened, why_closed=why_closed
    ) as replaying:
        opener = replaying.opener

        def ports() -> Collection[int]:
            return (replaying.port, replaying.gate_port, opener.running_port if opener is not None else 0)

        yield Children(ports, replaying.variables)


class _Shared:
    """The session of a replay, for a server in another thread."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay

    def answer(self, request: LiveRequest) -> Outcome:
        with self._replay.lock:
            return self._replay.session.answer(request)

    def open_socket(self, request: LiveRequest) -> SocketPlay | Outcome:
        with self._replay.lock:
            return self._replay.session.open_socket(request)

    def refused(self, what: str, note: str) -> object:
        with self._replay.lock:
            return self._replay.session.refused(what, note)

    def not_opened(self, what: str, message: str) -> Miss:
        with self._replay.lock:
            return self._replay.session.not_opened(what, message)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._replay.session, name)
