"""A running replay: the replay server and the forward proxy on two loopback ports, in a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class ReplayServerOptions:
    """What a replay server listens on, allows, intercepts and reports."""

    port: int = 0
    proxy_port: int = 0
    pace: float = 0
    let_through: Sequence[str] = ()  # globs of hosts that requests may reach
    on_outcome: Callable[[Outcome], None] | None = None
    interpose: Interpose | None = None  # may hold or change an outcome before it is sent
    authority: Authority | None = None  # signs certificates to intercept TLS; None: TLS is not intercepted
    why_closed: str = ""  # for the message of a miss: how to intercept TLS
    trouble: Callable[[str], None] = lambda text: None  # gets reports of errors
    lock: AbstractContextManager[Any] | None = None  # of a session that other threads use, too
    sealed: bool = False  # make `sealed_network`, in which programs reach only the two ports
    allow_hosts: Sequence[str] = ()  # globs of `Host` headers to serve in addition to this machine's
    allow_origins: Sequence[str] = ()  # globs of `Origin` headers to serve in addition to this machine's


class ReplayServer:
    """`with ReplayServer(session) as server:` serves on two loopback ports until the block ends.

    Raises UsageError if the system permits no sealed network.
    """

    def __init__(self, session: ReplaySession, options: ReplayServerOptions | None = None) -> None:
        options = options or ReplayServerOptions()
        self._session = session
        self._options = options
        self._handler = ReplayHandler(
            session,
            options.pace,
            on_outcome=options.on_outcome,
            interpose=options.interpose,
            on_reset=self._reset,
            lock=options.lock,
            admission=Admission(options.allow_hosts, options.allow_origins, session.knows_host),
        )
        self._listening = listen(options.port)
        self._proxy_listening = listen(options.proxy_port)
        self.port: int = self._listening.getsockname()[1]
        self.proxy_port: int = self._proxy_listening.getsockname()[1]
        self.interceptor = self._make_interceptor(options.authority)
        self._proxy = ForwardProxy(
            session,
            self.port,
            options.let_through,
            options.on_outcome,
            self.interceptor,
            options.authority is not None and options.authority.everything,
            options.why_closed,
        )
        self.sealed_network = self._make_sealed_network() if options.sealed else None
        self._transparent_proxy = TransparentProxy(
            self._proxy, self.proxy_port, session, options.let_through, options.trouble
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="wiretape-replay", daemon=True)

    def variables(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The variables that route a child process here: base URLs, proxies, dummy keys and trusted certificates."""
        authority = self._options.authority
        return {
            **base_url_variables(environ, self.port, offline=True),
            **proxy_variables(self.proxy_port),
            **dummy_keys(environ, self._session),
            **bedrock_variables(environ, self._session, self.port),
            **(authority.variables(environ) if authority is not None else {}),
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

    def _make_sealed_network(self) -> SealedNetwork:
        here = [("127.0.0.1", port) for port in (self.port, self.proxy_port)]
        ports = intercepted_ports(self._options.let_through)
        try:
            return make_sealed_network([*here, *((ANY_ADDRESS, port) for port in ports)])
        except BaseException:
            self._listening.close()
            self._proxy_listening.close()
            raise

    def _make_interceptor(self, authority: Authority | None) -> LazyReplayProxy | None:
        if authority is None:
            return None
        return LazyReplayProxy(authority.directory, self.port, self._tunnel_failed, self._options.trouble)

    def _tunnel_failed(self, host: str, port: int, why: str) -> None:
        """Called on the interceptor's thread."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop has just ended
                self._loop.call_soon_threadsafe(self._proxy.tunnel_failed, host, port, why)

    def _reset(self, address: tuple[str, int]) -> None:
        self._proxy.reset(address)

    def _run(self) -> None:
        with reported_once(self._options.trouble):
            asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._ready.set()  # both sockets listen already: early connections wait in their queues
        await asyncio.gather(
            serve(self._handler, self._listening, self._stop),
            self._proxy.serve(self._proxy_listening, self._stop),
            *self._serve_sealed(self._stop),
        )

    def _serve_sealed(self, stop: asyncio.Event) -> list[Coroutine[Any, Any, None]]:
        if self.sealed_network is None:
            return []
        server, proxy, *intercepted = self.sealed_network.listening
        return [
            serve(self._handler, server, stop),
            self._proxy.serve(proxy, stop),
            self._transparent_proxy.serve(self.sealed_network, intercepted, stop),
        ]
