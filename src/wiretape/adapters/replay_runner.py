"""A running replay: the server and the gate on two loopback ports, in a thread of their own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from types import TracebackType
from typing import Any

from wiretape.adapters.http1.server import listen, serve
from wiretape.adapters.launch.child import proxy_variables
from wiretape.adapters.mitm.tls_interception import Authority, LazyReplayProxy
from wiretape.adapters.open_files import reported_once
from wiretape.adapters.replay_server.forward_proxy import ForwardProxy
from wiretape.adapters.replay_server.server import Interpose, ReplayHandler
from wiretape.adapters.routing.admission import Admission
from wiretape.adapters.routing.base_urls import base_url_variables
from wiretape.adapters.routing.dummy_keys import bedrock_variables, dummy_keys
from wiretape.adapters.routing.tool_route import tool_variables
from wiretape.adapters.sealed.network import ANY_ADDRESS, SealedNetwork, make_sealed_network
from wiretape.adapters.sealed.transparent_proxy import TransparentProxy, intercepted_ports
from wiretape.matching.session import ReplaySession
from wiretape.matching.values import Outcome


class ReplayServer:
    """`with ReplayServer(session) as replaying:` serves until the block ends.

    `authority`: TLS is opened in its name; without one it stays closed, and `why_closed` says in a miss what would
    open it. `interpose` stands between answers and what is sent. `trouble` is told of what went wrong on the way.
    `lock` guards a session that other threads use, too. `sealed`: make `sealed_network`, in which programs can be
    started that reach nothing but both ports; UsageError if the system does not permit it. `allow_hosts` and
    `allow_origins`: globs of `Host` and `Origin` headers that are served besides those of this machine.
    """

    def __init__(
        self,
        session: ReplaySession,
        *,
        port: int = 0,
        proxy_port: int = 0,
        pace: float = 0,
        let_through: Sequence[str] = (),
        on_outcome: Callable[[Outcome], None] | None = None,
        interpose: Interpose | None = None,
        authority: Authority | None = None,
        why_closed: str = "",
        trouble: Callable[[str], None] = lambda text: None,
        lock: AbstractContextManager[Any] | None = None,
        sealed: bool = False,
        allow_hosts: Sequence[str] = (),
        allow_origins: Sequence[str] = (),
    ) -> None:
        self._session = session
        self._authority = authority
        self._trouble = trouble
        self._handler = ReplayHandler(
            session,
            pace,
            on_outcome=on_outcome,
            interpose=interpose,
            on_reset=self._reset,
            lock=lock,
            admission=Admission(allow_hosts, allow_origins, session.knows_host),
        )
        self._listening = listen(port)
        self._proxy_listening = listen(proxy_port)
        self.port: int = self._listening.getsockname()[1]
        self.proxy_port: int = self._proxy_listening.getsockname()[1]
        self.interceptor = self._make_interceptor(authority)
        everything = authority is not None and authority.everything
        self._proxy = ForwardProxy(
            session, self.port, let_through, on_outcome, self.interceptor, everything, why_closed
        )
        self.sealed_network = self._make_seal(let_through) if sealed else None
        self._transparent_proxy = TransparentProxy(self._proxy, self.proxy_port, session, let_through, trouble)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="wiretape-replay", daemon=True)

    def variables(self, environ: Mapping[str, str]) -> dict[str, str]:
        """What leads a child here: base URLs to the server, proxies to the gate, keys so that SDKs start, and trust."""
        return {
            **base_url_variables(environ, self.port, offline=True),
            **proxy_variables(self.proxy_port),
            **dummy_keys(environ, self._session),
            **bedrock_variables(environ, self._session, self.port),
            **(self._authority.variables(environ) if self._authority is not None else {}),
            **tool_variables("replay", self.port),
        }

    def __enter__(self) -> ReplayServer:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        if self.interceptor is not None:
            self.interceptor.stop()
        if self.sealed_network is not None:
            self.sealed_network.close()

    @property
    def intercepted(self) -> dict[str, int]:
        """How many connections of a sealed program ignored its proxy variables and were served here, by `host:port`."""
        served, passed = self._transparent_proxy.connections, self._session.ledger.passed
        return {place: count for place, count in served.items() if place not in passed}

    def _make_seal(self, let_through: Sequence[str]) -> SealedNetwork:
        here = [("127.0.0.1", port) for port in (self.port, self.proxy_port)]
        try:
            return make_sealed_network([*here, *((ANY_ADDRESS, port) for port in intercepted_ports(let_through))])
        except BaseException:
            self._listening.close()
            self._proxy_listening.close()
            raise

    def _make_interceptor(self, authority: Authority | None) -> LazyReplayProxy | None:
        if authority is None:
            return None
        return LazyReplayProxy(authority.directory, self.port, self._tunnel_failed, self._trouble)

    def _tunnel_failed(self, host: str, port: int, why: str) -> None:
        """Called on the interceptor's thread."""
        if self._loop is not None:
            with suppress(RuntimeError):  # it has just ended
                self._loop.call_soon_threadsafe(self._proxy.tunnel_failed, host, port, why)

    def _reset(self, address: tuple[str, int]) -> None:
        self._proxy.reset(address)

    def _run(self) -> None:
        with reported_once(self._trouble):
            asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._ready.set()  # both sockets listen already: early connections wait in their queues
        await asyncio.gather(
            serve(self._handler, self._listening, self._stop),
            self._proxy.serve(self._proxy_listening, self._stop),
            *self._serving_inside(self._stop),
        )

    def _serving_inside(self, stop: asyncio.Event) -> list[Coroutine[Any, Any, None]]:
        if self.sealed_network is None:
            return []
        server, gate, *straight = self.sealed_network.listening
        return [
            serve(self._handler, server, stop),
            self._proxy.serve(gate, stop),
            self._transparent_proxy.serve(self.sealed_network, straight, stop),
        ]
