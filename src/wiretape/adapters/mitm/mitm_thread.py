"""mitmproxy in this process, on a thread of its own, listening on 127.0.0.1 only. Its addons say what it does.

mitmproxy keeps what it runs with in globals: there is room for one at a time in a process.
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
from wiretape.adapters.mitm._compat.fixes import idle_timeout, mend
from wiretape.adapters.open_files import reported_once
from wiretape.adapters.routing.upstream_proxy import UpstreamProxy

_NEVER_S = 30 * 24 * 3600  # a stream may be silent for longer than mitmproxy's ten minutes
_HANG_UP_S = 1.0  # what ends connections that are cancelled gets this long


@dataclass(frozen=True, slots=True)
class ProxySettings:
    """`confdir` holds the CA; `upstream_ca` are the certificates that upstreams are checked against.

    `redact`: print mitmproxy's log to stderr, each message as this returns it; None: print no log.
    """

    confdir: Path
    upstream_ca: Path | None = None
    port: int = 0  # 0: any free one
    via: UpstreamProxy | None = None
    redact: Callable[[str], str] | None = None


class MitmThread:
    """One proxy, from `start` to `stop`. `first` are addons that decide before mitmproxy's own, `last` come after."""

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
        mend()
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure
        return self.port

    def stop(self) -> None:
        """Take no new connection, let what is ending end, then cut what is left."""
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._master.should_exit.set)
        self._thread.join()

    def listens(self, port: int) -> None:
        """Told before anything can come in."""

    async def drained(self) -> None:
        """What may still end by itself after the last connection was taken."""

    def _run(self) -> None:
        try:
            with reported_once(self._trouble) as once, _logging(self._settings.redact, self._trouble, once):
                asyncio.run(self._serve())
        except BaseException as error:
            self._failure = self._failure or error  # the first is why
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
        await _hang_up(servers)

    def _options(self) -> options.Options:
        via, upstream_ca = self._settings.via, self._settings.upstream_ca
        return options.Options(
            confdir=str(self._settings.confdir),
            mode=[f"{via.mode if via is not None else 'regular'}@127.0.0.1:{self.port}"],
            ssl_verify_upstream_trusted_ca=str(upstream_ca) if upstream_ca else None,
            **idle_timeout(_NEVER_S),
        )

    def _addon_options(self) -> dict[str, Any]:
        """Options that exist only once their addons do. Headers are passed on as they are, odd ones too."""
        changed: dict[str, Any] = {"connection_strategy": "lazy", "validate_inbound_headers": False}
        if self._settings.via is not None and self._settings.via.auth is not None:
            changed["upstream_auth"] = self._settings.via.auth
        return changed

    def _port_taken(self) -> None:
        self._failure = port_taken(self._settings.port)
        self._master.should_exit.set()


class _Servers(proxyserver.Proxyserver):  # type: ignore[misc, unused-ignore]
    """Knows its clients' sockets: mitmproxy leaves one open whose connection is cancelled at a bad moment."""

    name = "proxyserver"  # as other addons ask for it

    def __init__(self) -> None:
        super().__init__()
        self.writers: WeakSet[Any] = WeakSet()
        self._handlers: WeakValueDictionary[str, Any] = WeakValueDictionary()  # by the client's id
        self._upstream: dict[str, Any] = {}  # the connections that these opened, by the server's id

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
        """Done with: what was cancelled while it told of its own end, as at a reset of both sides, is still open."""
        io = self._upstream.pop(data.server.id, None)
        if io is not None:
            with suppress(OSError):
                io.writer.close()

    def error(self, flow: http.HTTPFlow) -> None:
        """Reset a client whose upstream has reset its connection: mitmproxy is about to close it in order."""
        io = self._upstream.get(flow.server_conn.id)
        handler = self._handlers.get(flow.client_conn.id)
        if io is None or handler is None or not isinstance(io.reader.exception(), ConnectionResetError):
            return
        client = handler.transports.get(handler.client)
        if client is not None and client.writer is not None and not flow.request.is_http2:
            close_by_reset(client.writer.transport)

    def websocket_end(self, flow: http.HTTPFlow) -> None:
        self.error(flow)


async def _hang_up(servers: _Servers) -> None:
    """End the connections that are left as mitmproxy ends those that time out, and close every socket.

    Left to the end of the loop they would only be cancelled, which closes no socket and, on Python before 3.12.2,
    prints a traceback for each.
    """
    for connection in list(servers.connections.values()):
        client = connection.transports.get(connection.client)
        if client is not None and client.handler is not None:
            client.handler.cancel("the proxy ends")
    deadline = asyncio.get_running_loop().time() + _HANG_UP_S
    while servers.connections and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.005)
    for writer in servers.writers:
        writer.transport.abort()
    await asyncio.sleep(0)  # the loop closes them in its next round


class _Started:
    """Tells the waiting thread that the proxy listens, or that it does not."""

    def __init__(self, servers: Any, ready: threading.Event, failed: Any) -> None:
        self._servers = servers
        self._ready = ready
        self._failed = failed

    def running(self) -> None:
        if not self._servers.listen_addrs():
            self._failed()
        self._ready.set()


def free_port(port: int) -> int:
    """The port to listen on: asked for or free. Found out here, where there is an exception to say so."""
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
    """mitmproxy's own errors are the person's business: something of the traffic may have gone wrong."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(logging.ERROR)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        said = record.getMessage().strip().splitlines()
        if said:  # an error without words is one of what ends, behind the one that ended it
            self._tell(f"the proxy says: {said[0]}")


class _Redacting(logging.Formatter):
    """mitmproxy's messages and tracebacks, which may quote what a client sent."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__("mitmproxy: %(message)s")
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        return self._redact(super().format(record))


@contextmanager
def _logging(redact: Callable[[str], str] | None, tell: Callable[[str], None], once: logging.Filter) -> Iterator[None]:
    """mitmproxy's log: its errors become troubles; all of it goes to stderr on request."""
    log = logging.getLogger("mitmproxy")
    handlers: list[logging.Handler] = [_Faults(tell)]
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
