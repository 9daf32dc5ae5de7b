"""The replay server for child processes of a replay: it shares the session of this process."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from wiretape.adapters.inprocess.context import ChildRoutes
from wiretape.adapters.mitm.tls_interception import authority
from wiretape.adapters.replay_runner import ReplayServer, ReplayServerOptions
from wiretape.errors import UsageError
from wiretape.matching.session import ReplaySession

if TYPE_CHECKING:
    from wiretape.adapters.inprocess.context_replay import Replay


@contextmanager
def replaying_children(replay: Replay, pass_hosts: Sequence[str]) -> Iterator[ChildRoutes]:
    """Run a replay server on loopback ports. It intercepts TLS if mitmproxy is installed."""
    shared = cast(ReplaySession, LockedSession(replay))
    try:
        opened, why_closed = authority(os.environ), ""
    except UsageError as error:
        opened, why_closed = None, f"  TLS of child processes is not intercepted: {error}"
    with ReplayServer(
        shared, ReplayServerOptions(let_through=pass_hosts, lock=replay.lock, authority=opened, why_closed=why_closed)
    ) as server:
        interceptor = server.interceptor

        def ports() -> Collection[int]:
            return server.port, server.proxy_port, interceptor.running_port if interceptor is not None else 0

        yield ChildRoutes(ports, server.variables)


class LockedSession:
    """The session of a replay, for other threads: each method holds the lock of the replay."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._replay.session, name)
        return functools.partial(self._locked, found) if callable(found) else found

    def _locked(self, method: Callable[..., Any], *args: Any, **named: Any) -> Any:
        with self._replay.lock:
            return method(*args, **named)
