"""The patch of `http.client`, and so of `urllib.request`, `xmlrpc.client`, httplib2 and other libraries on top of it.

Connections are reused, so each request is routed separately: a recorded one is tapped, a replayed one gets a socket in
memory. urllib3 also uses `http.client`, but has its own patch. httplib2 connects with a method of its own, before it
sends a request: that method is patched, too.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from wiretape.adapters.inprocess.active_context import RequestRoute, route_for
from wiretape.adapters.inprocess.patches import _compat
from wiretape.adapters.inprocess.patches.patching import Patch
from wiretape.adapters.inprocess.sockets.http1_sockets import MemorySocket, TappedSocket, is_claimed, untapped
from wiretape.adapters.inprocess.sockets.taps import ExchangeTap
from wiretape.model.http import bracketed

_SOCKETS: Final = "_wiretape_sockets"
_PORTS: Final = {"http": 80, "https": 443}
_KINDS: Final = ("HTTP", "HTTPS")


def patches(module: ModuleType) -> list[Patch]:
    if module.__name__ == "httplib2":
        return [Patch(getattr(module, f"{kind}ConnectionWithTimeout"), "connect", _connect) for kind in _KINDS]
    made = [
        Patch(module.HTTPConnection, "connect", _connect),
        Patch(module.HTTPConnection, "putrequest", _putrequest),
        Patch(module.HTTPConnection, "send", _send),
    ]
    if hasattr(module, "HTTPSConnection"):  # absent if Python was built without TLS
        made.append(Patch(module.HTTPSConnection, "connect", _connect))
    return made


class _RequestSockets(NamedTuple):
    """The sockets of the request that a connection has begun."""

    memory: MemorySocket | None
    tap: ExchangeTap | None


class _NoSocket:
    """The socket of a connection that was opened before its first request. Each request gets its own socket."""

    def sendall(self, data: Any) -> None:
        raise ConnectionResetError(errno.ECONNRESET, "this connection was opened in a replay that has ended")

    def close(self) -> None:
        pass

    def settimeout(self, seconds: float | None) -> None:
        pass

    def setsockopt(self, *option: Any) -> None:
        pass


def _connect(original: Callable[[Any], None]) -> Callable[[Any], None]:
    def connect(conn: Any) -> None:
        route = None if is_claimed(conn) else _route(_url(conn, ""), count=False)
        if route is None or route.replaying is None:
            original(conn)
        else:
            conn.sock = _NoSocket()  # a replay opens no connection

    return connect


def _putrequest(original: Callable[..., None]) -> Callable[..., None]:
    def putrequest(conn: Any, method: str, url: str, *args: Any, **kwargs: Any) -> None:
        original(conn, method, url, *args, **kwargs)
        conn.__dict__.pop(_SOCKETS, None)
        if is_claimed(conn):
            return
        full = _url(conn, url)
        route = _route(full)
        if route is None:
            _drop_memory_socket(conn)
            return
        memory = MemorySocket(route.replaying, full, _unreachable) if route.replaying is not None else None
        tap = (
            ExchangeTap(method, lambda sent: route.begin_exchange(method, full, sent))
            if route.recording is not None
            else None
        )
        conn.__dict__[_SOCKETS] = _RequestSockets(memory, tap)

    return putrequest


def _send(original: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    def send(conn: Any, data: Any) -> None:
        sockets: _RequestSockets | None = conn.__dict__.get(_SOCKETS)
        if sockets is None:
            original(conn, data)
            return
        try:
            _set_socket(conn, sockets)
            original(conn, data)
        except BaseException as error:
            if sockets.tap is not None:
                if isinstance(data, bytes) and not isinstance(conn.sock, TappedSocket):
                    sockets.tap.sent(data)  # it was never sent
                sockets.tap.failed(error, (), b"")
            raise

    return send


def _set_socket(conn: Any, sockets: _RequestSockets) -> None:
    """Set the socket for a request."""
    sock = untapped(conn.sock)
    if sockets.memory is not None and sock is not sockets.memory:
        if sock is not None:
            sock.close()  # it may be connected to a real server
        sock = conn.sock = sockets.memory
    if sockets.memory is None and isinstance(sock, MemorySocket | _NoSocket):
        sock = conn.sock = None  # it belongs to an earlier replay
    if sockets.tap is None:
        return
    if sock is None and conn.auto_open:
        conn.connect()
        sock = untapped(conn.sock)
    if sock is not None:
        conn.sock = TappedSocket(sock, sockets.tap)


def _unreachable(message: str) -> Exception:
    return ConnectionRefusedError(errno.ECONNREFUSED, message)


def _drop_memory_socket(conn: Any) -> None:
    """For a request outside of any context, on a connection that was used in a replay."""
    if isinstance(conn.sock, MemorySocket | _NoSocket):
        conn.sock = None


def _route(url: str, count: bool = True) -> RequestRoute | None:
    parts = urlsplit(url)
    return route_for(parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0), count)


def _url(conn: Any, target: str) -> str:
    """The whole URL of a request. The target of a plain request to a proxy already is one."""
    if "://" in target.partition("?")[0] and not target.startswith("/"):
        return target
    secure = conn.default_port == _PORTS["https"]
    tunnel_host, tunnel_port = _compat.tunnel_of(conn)
    port = tunnel_port if tunnel_host else conn.port
    name = bracketed(tunnel_host or conn.host)
    there = name if port in (None, conn.default_port) else f"{name}:{port}"
    path = target if target.startswith("/") else f"/{target}"  # a target such as `*` would change the host
    return f"{'https' if secure else 'http'}://{there}{path}"
