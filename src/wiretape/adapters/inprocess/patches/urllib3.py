"""The patch of urllib3, and so of requests, boto3 and other libraries on top of it.

It works at the connections, below retries and redirects. A recorded connection is tapped; a replayed one gets a socket
in memory, whose bytes urllib3 parses itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from wiretape.adapters.inprocess.active_context import route_for
from wiretape.adapters.inprocess.patches import _compat
from wiretape.adapters.inprocess.patches.patching import Patch
from wiretape.adapters.inprocess.sockets.http1_sockets import MemorySocket, TappedSocket, claimed, untapped
from wiretape.adapters.inprocess.sockets.taps import ExchangeTap
from wiretape.model.http import bracketed


def patches(module: ModuleType) -> list[Patch]:
    return [
        Patch(module.HTTPConnectionPool, _compat.URLLIB3_REQUEST, _make_request),
        Patch(module.HTTPSConnectionPool, _compat.URLLIB3_TUNNEL, _prepare_proxy),
    ]


def _prepare_proxy(original: Callable[..., None]) -> Callable[..., None]:
    def prepare(pool: Any, conn: Any) -> None:
        route = route_for(pool.host, _port(pool), count=False)
        if route is None or route.replaying is None:  # a replay needs no tunnel
            original(pool, conn)

    return prepare


def _make_request(original: Callable[..., Any]) -> Callable[..., Any]:
    def make_request(
        pool: Any, conn: Any, method: str, url: str, body: Any = None, headers: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        route = route_for(pool.host, _port(pool))
        send = functools.partial(original, pool, conn, method, url, body, headers, *args, **kwargs)
        with claimed(conn):
            if route is None:
                return send()
            full = url if "://" in url else f"{pool.scheme}://{_netloc(pool)}{url}"
            if route.replaying is not None:
                conn.close()  # it may be connected to a real server
                conn.sock = MemorySocket(route.replaying, full, functools.partial(_unreachable, conn))
                conn.is_verified = True
            if route.recording is None:
                return send()
            tap = ExchangeTap(method, lambda sent: route.begin_exchange(method, full, sent))
            _tap(conn, tap)
            try:
                return send()
            except BaseException as error:
                tap.failed(error, list((headers or {}).items()), body)
                raise
            finally:
                conn.__dict__.pop("connect", None)

    return make_request


def _unreachable(conn: Any, message: str) -> Exception:
    from urllib3.exceptions import NewConnectionError

    return NewConnectionError(conn, message)


def _port(pool: Any) -> int:
    return pool.port or (443 if pool.scheme == "https" else 80)


def _netloc(pool: Any) -> str:
    host = bracketed(pool.host)
    default = pool.port in (None, 443 if pool.scheme == "https" else 80)
    return host if default else f"{host}:{pool.port}"


def _tap(conn: Any, tap: ExchangeTap) -> None:
    """Tap a connection: now, or right after it connects."""
    if conn.sock is not None:
        conn.sock = TappedSocket(untapped(conn.sock), tap)
        return
    connect = conn.connect

    def connected() -> None:
        connect()
        conn.sock = TappedSocket(untapped(conn.sock), tap)

    conn.connect = connected
