"""The door for urllib3, and so for requests, boto3 and whatever else stands on it.

Below urllib3's retries and redirects, at its connections: a recorded connection is tapped, a replayed one is a socket
that only exists in memory. urllib3 itself parses what comes, with `preload_content` or chunk by chunk.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from wiretape.adapters.http1 import RequestReader, Tap, answer
from wiretape.adapters.inside import Inside, way
from wiretape.adapters.patching import Patch
from wiretape.adapters.sending import LINGER_SECONDS
from wiretape.model.http import Ended, Headers
from wiretape.replay.playback import Playback
from wiretape.replay.values import LiveRequest


def patches(module: ModuleType) -> list[Patch]:
    return [
        Patch(module.HTTPConnectionPool, "_make_request", _make_request),
        Patch(module.HTTPSConnectionPool, "_prepare_proxy", _prepare_proxy),
    ]


def _prepare_proxy(original: Callable[..., None]) -> Callable[..., None]:
    def prepare(pool: Any, conn: Any) -> None:
        where = way(pool.host, _port(pool), count=False)
        if where is None or where.replaying is None:  # else there is nobody to open a tunnel to
            original(pool, conn)

    return prepare


def _make_request(original: Callable[..., Any]) -> Callable[..., Any]:
    def make_request(
        pool: Any, conn: Any, method: str, url: str, body: Any = None, headers: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        where = way(pool.host, _port(pool))
        if where is None:
            return original(pool, conn, method, url, body, headers, *args, **kwargs)
        full = url if "://" in url else f"{pool.scheme}://{_netloc(pool)}{url}"
        if where.replaying is not None:
            conn.close()  # it may lead to a real server
            conn.sock = _MemorySocket(where.replaying, full, conn)
            conn.is_verified = True
        if where.recording is None:
            return original(pool, conn, method, url, body, headers, *args, **kwargs)
        tap = Tap(method, lambda sent: where.taken(method, full, sent))
        _tap(conn, tap)
        try:
            return original(pool, conn, method, url, body, headers, *args, **kwargs)
        except BaseException as error:
            tap.failed(error, list((headers or {}).items()), body)
            raise
        finally:
            conn.__dict__.pop("connect", None)

    return make_request


def _port(pool: Any) -> int:
    return pool.port or (443 if pool.scheme == "https" else 80)


def _netloc(pool: Any) -> str:
    host = f"[{pool.host}]" if ":" in pool.host else pool.host
    default = pool.port in (None, 443 if pool.scheme == "https" else 80)
    return host if default else f"{host}:{pool.port}"


def _tap(conn: Any, tap: Tap) -> None:
    """Put a tap on a connection: now, or as soon as it is connected."""
    if conn.sock is not None:
        conn.sock = _TappedSocket(_real(conn.sock), tap)
        return
    connect = conn.connect

    def connected() -> None:
        connect()
        conn.sock = _TappedSocket(_real(conn.sock), tap)

    conn.connect = connected


def _real(sock: Any) -> Any:
    return sock.real if isinstance(sock, _TappedSocket) else sock


class _TappedSocket:
    """A socket whose bytes are told on their way. Everything else is the real one's."""

    def __init__(self, real: Any, tap: Tap) -> None:
        self.real = real
        self._tap = tap

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def sendall(self, data: Any, *flags: int) -> None:
        self._tap.sent(data)
        self.real.sendall(data, *flags)

    def makefile(self, mode: str = "r", buffering: int | None = None, **more: Any) -> Any:
        raw = _TappedFile(self.real.makefile(mode, buffering=0), self._tap)
        return raw if buffering == 0 else io.BufferedReader(raw)


class _TappedFile(io.RawIOBase):
    def __init__(self, raw: Any, tap: Tap) -> None:
        self._raw = raw
        self._tap = tap

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            count = self._raw.readinto(buffer) or 0
        except BaseException as error:
            self._tap.failed(error, (), b"")
            raise
        if count:
            self._tap.received(bytes(memoryview(buffer)[:count]))
        elif len(buffer):
            self._tap.eof()
        return count

    def close(self) -> None:
        if not self.closed:
            self._tap.hung_up()
            self._raw.close()
        super().close()


class _MemorySocket:
    """Takes a request, and gives what the tape answers."""

    def __init__(self, replaying: Inside, url: str, conn: Any) -> None:
        self._replaying = replaying
        self._url = url
        self._conn = conn
        self._body: list[bytes] = []
        self._reader = RequestReader(self._body.append)
        self._shown: Playback | None = None

    def sendall(self, data: Any, *flags: int) -> None:
        self._reader.feed(bytes(data))
        if self._reader.complete and self._shown is None:
            self._answer()

    def makefile(self, mode: str = "r", buffering: int | None = None, **more: Any) -> Any:
        if self._shown is None:
            return io.BytesIO()
        raw = _PlayedFile(self._shown)
        return raw if buffering == 0 else io.BufferedReader(raw)

    def settimeout(self, seconds: float | None) -> None:
        pass

    def close(self) -> None:
        pass

    def shutdown(self, how: int) -> None:
        pass

    def _answer(self) -> None:
        reader = self._reader
        request = LiveRequest(reader.method, self._url, Headers(reader.headers), b"".join(self._body))
        self._shown = self._replaying.answer(request)
        if self._shown.status is None and self._shown.ended is Ended.UPSTREAM_UNREACHABLE:
            from urllib3.exceptions import NewConnectionError

            raise NewConnectionError(self._conn, "Failed to establish a new connection (as recorded)")


class _PlayedFile(io.RawIOBase):
    """A recorded answer, read as from a socket: each read gives no more than has come by then."""

    def __init__(self, shown: Playback) -> None:
        self._shown = shown
        self._chunks = answer(shown)
        self._rest = b""
        self._gone = threading.Event()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            self._rest = next(self._arriving(), b"")
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count

    def close(self) -> None:
        self._gone.set()
        super().close()

    def _arriving(self) -> Iterator[bytes]:
        for pause, data in self._chunks:
            self._wait(pause)
            if data:
                yield data
        if self._shown.linger:
            self._wait(LINGER_SECONDS * 1000)
        if self._shown.ended is Ended.TIMEOUT:
            raise TimeoutError("timed out (as recorded)")

    def _wait(self, milliseconds: float) -> None:
        if milliseconds > 0:
            self._gone.wait(milliseconds / 1000)
