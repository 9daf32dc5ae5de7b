"""The server for child processes of a replay: it listens on loopback ports and shares the replay's session."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from wiretape.adapters.mitm.tls_interception import authority
from wiretape.adapters.replay_runner import ReplayServer
from wiretape.errors import UsageError
from wiretape.matching.session import ReplaySession

if TYPE_CHECKING:
    from wiretape.adapters.inprocess.context_replay import Replay


@dataclass(frozen=True, slots=True)
class ChildRoutes:
    """Where child processes are sent: `variables` come on top of an environment, `ports` are those that they name."""

    ports: Callable[[], Collection[int]]
    variables: Callable[[Mapping[str, str]], dict[str, str]]


@contextmanager
def replaying_children(replay: Replay, pass_hosts: Sequence[str]) -> Iterator[ChildRoutes]:
    """A replay server that shares its session with this process. It opens TLS where mitmproxy is installed."""
    shared = cast(ReplaySession, LockedSession(replay))
    try:
        opened, why_closed = authority(os.environ), ""
    except UsageError as error:
        opened, why_closed = None, f"  TLS of child processes is not opened: {error}"
    with ReplayServer(
        shared, let_through=pass_hosts, lock=replay.lock, authority=opened, why_closed=why_closed
    ) as replaying:
        opener = replaying.interceptor

        def ports() -> Collection[int]:
            return (replaying.port, replaying.proxy_port, opener.running_port if opener is not None else 0)

        yield ChildRoutes(ports, replaying.variables)


class LockedSession:
    """The session of a replay, for other threads: its lock is held while a method runs."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._replay.session, name)
        return functools.partial(self._locked, found) if callable(found) else found

    def _locked(self, method: Callable[..., Any], *args: Any, **named: Any) -> Any:
        with self._replay.lock:
            return method(*args, **named)
