"""Runs mitmproxy on a thread of this process, on 127.0.0.1. Its addons decide what it does.

mitmproxy keeps its state in globals: one can run at a time in a process.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakSet, WeakValueDictionary

from mitmproxy import http, options
from mitmproxy.addons import core, next_layer, proxyserver, tlsconfig, upstream_auth
from mitmproxy.master import Master

from wiretape.adapters.http1.server import close_by_reset, port_taken
from wiretape.adapters.mitm._compat import fixes
from wiretape.adapters.open_files import reported_once
from wiretape.adapters.routing.upstream_proxy import UpstreamProxy

_NO_TIMEOUT_S = 30 * 24 * 3600  # a stream may be silent for longer than mitmproxy's ten minutes
_CLOSE_S = 1.0  # for cancelled connections to end


@dataclass(frozen=True, slots=True)
class ProxySettings:
    """`confdir`: the directory of the CA. `upstream_ca`: trusted certificates of upstreams.

    `redact`: print mitmproxy's log to stderr, each message as this returns it; None: do not print it.
    """

    confdir: Path
    upstream_ca: Path | None = None
    port: int = 0  # 0: any free one
    via: UpstreamProxy | None = None
    redact: Callable[[str], str] | None = None


class MitmThread:
    """One proxy, from `start` to `stop`. Addons in `first` run before mitmproxy's own, those in `last` after them."""

    def __init__(
        self, settings: ProxySettings, first: Sequence[object], last: Sequence[object], trouble: Callable[[str], None]
    ) -> None:
        self.port = 0
        self._settings = settings
        self._first = first
        self._last = last
        self._trouble = trouble
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._master: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="wiretape-proxy", daemon=True)

    def start(self) -> int:
        """Listen; return the port."""
        fixes.install()
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure
        return self.port

    def stop(self) -> None:
        """Stop listening, let connections end, then abort the remaining ones."""
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._master.should_exit.set)
        self._thread.join()

    def listens(self, port: int) -> None:
        """Called before the first connection is accepted."""

    async def drained(self) -> None:
        """Wait for exchanges to end after the proxy has stopped listening."""

    def _run(self) -> None:
        try:
            with reported_once(self._trouble) as once, _logging(self._settings.redact, self._trouble, once):
                asyncio.run(self._serve())
        except BaseException as error:
            self._failure = self._failure or error  # the first is the cause
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.port = free_port(self._settings.port)
        self.listens(self.port)
        self._master = Master(self._options())
        servers = _Servers()
        self._master.addons.add(
            *self._first,
            core.Core(),
            servers,
            next_layer.NextLayer(),
            tlsconfig.TlsConfig(),
            upstream_auth.UpstreamAuth(),
            _Started(servers, self._ready, self._port_taken),
            *self._last,
        )
        self._master.options.update(**self._addon_options())
        await self._master.run()
        await servers.servers.update([])
        await self.drained()
        await _close_connections(servers)

    def _options(self) -> options.Options:
        via, upstream_ca = self._settings.via, self._settings.upstream_ca
        return options.Options(
            confdir=str(self._settings.confdir),
            mode=[f"{via.mode if via is not None else 'regular'}@127.0.0.1:{self.port}"],
            ssl_verify_upstream_trusted_ca=str(upstream_ca) if upstream_ca else None,
            **fixes.idle_timeout(_NO_TIMEOUT_S),
        )

    def _addon_options(self) -> dict[str, Any]:
        """Return options that their addons define. Headers are passed on unchanged, even invalid ones."""
        changed: dict[str, Any] = {"connection_strategy": "lazy", "validate_inbound_headers": False}
        if self._settings.via is not None and self._settings.via.auth is not None:
            changed["upstream_auth"] = self._settings.via.auth
        return changed

    def _port_taken(self) -> None:
        self._failure = port_taken(self._settings.port)
        self._master.should_exit.set()


class _Servers(proxyserver.Proxyserver):  # type: ignore[misc, unused-ignore]
    """Keeps the sockets of its connections, because mitmproxy leaves some open and closes others without a reset."""

    name = "proxyserver"  # under which other addons find it

    def __init__(self) -> None:
        super().__init__()
        self.writers: WeakSet[Any] = WeakSet()
        self._handlers: WeakValueDictionary[str, Any] = WeakValueDictionary()  # by the client's id
        self._upstream: dict[str, Any] = {}  # upstream connections, by the server's id

    @contextmanager
    def register_connection(self, connection_id: Any, handler: Any) -> Iterator[None]:
        self.writers.update(io.writer for io in handler.transports.values() if io.writer is not None)
        self._handlers[handler.client.id] = handler
        with super().register_connection(connection_id, handler):
            yield

    def server_connected(self, data: Any) -> None:
        handler = self._handlers.get(data.client.id)
        io = handler.transports.get(data.server) if handler is not None else None
        if io is not None and io.writer is not None:
            self._upstream[data.server.id] = io

    def server_disconnected(self, data: Any) -> None:
        """Close the socket: it is still open if its task was cancelled in this hook, as when both sides are reset."""
        io = self._upstream.pop(data.server.id, None)
        if io is not None:
            with suppress(OSError):
                io.writer.close()

    def error(self, flow: http.HTTPFlow) -> None:
        """Reset the connection of a client whose upstream was reset; mitmproxy would close it normally."""
        io = self._upstream.get(flow.server_conn.id)
        handler = self._handlers.get(flow.client_conn.id)
        if io is None or handler is None or not isinstance(io.reader.exception(), ConnectionResetError):
            return
        client = handler.transports.get(handler.client)
        if client is not None and client.writer is not None and not flow.request.is_http2:
            close_by_reset(client.writer.transport)

    def websocket_end(self, flow: http.HTTPFlow) -> None:
        self.error(flow)


async def _close_connections(servers: _Servers) -> None:
    """End the remaining connections as mitmproxy does after a timeout, and close every socket.

    The end of the loop would only cancel them, which leaves their sockets open and, on Python before 3.12.2, prints a
    traceback for each.
    """
    for connection in list(servers.connections.values()):
        client = connection.transports.get(connection.client)
        if client is not None and client.handler is not None:
            client.handler.cancel("the proxy ends")
    deadline = asyncio.get_running_loop().time() + _CLOSE_S
    while servers.connections and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.005)
    for writer in servers.writers:
        writer.transport.abort()
    await asyncio.sleep(0)  # the loop closes them in its next turn


class _Started:
    """Wakes the thread that waits for the proxy to listen, or to fail."""

    def __init__(self, servers: Any, ready: threading.Event, failed: Any) -> None:
        self._servers = servers
        self._ready = ready
        self._failed = failed

    def running(self) -> None:
        if not self._servers.listen_addrs():
            self._failed()
        self._ready.set()


def free_port(port: int) -> int:
    """Return a port that is free: this one, or any if it is 0. UsageError: it is in use."""
    with socket.socket() as probe:
        if os.name == "posix":
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise port_taken(port) from error
        number: int = probe.getsockname()[1]
        return number


class _Faults(logging.Handler):
    """Reports mitmproxy's own errors to the user: they may concern the traffic."""

    def __init__(self, report: Callable[[str], None]) -> None:
        super().__init__(logging.ERROR)
        self._report = report

    def emit(self, record: logging.LogRecord) -> None:
        lines = record.getMessage().strip().splitlines()
        if lines:  # an empty error follows another with the reason
            self._report(f"mitmproxy reports: {lines[0]}")


class _Redacting(logging.Formatter):
    """Redacts mitmproxy's messages and tracebacks, which may quote requests."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__("mitmproxy: %(message)s")
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        return self._redact(super().format(record))


@contextmanager
def _logging(
    redact: Callable[[str], str] | None, report: Callable[[str], None], once: logging.Filter
) -> Iterator[None]:
    """Report the errors in mitmproxy's log; print all of the log to stderr if `redact` is given."""
    log = logging.getLogger("mitmproxy")
    handlers: list[logging.Handler] = [_Faults(report)]
    if redact is not None:
        handlers.append(logging.StreamHandler())
        handlers[-1].setFormatter(_Redacting(redact))
    before = log.propagate, log.level
    log.propagate = False
    log.setLevel(logging.INFO if redact is not None else logging.ERROR)
    for handler in handlers:
        handler.addFilter(once)
        log.addHandler(handler)
    try:
        yield
    finally:
        for handler in handlers:
            log.removeHandler(handler)
        log.propagate = before[0]
        log.setLevel(before[1])
