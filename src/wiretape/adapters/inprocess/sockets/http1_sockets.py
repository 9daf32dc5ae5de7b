"""Sockets for libraries that parse HTTP/1.1 themselves and block: real ones with a tap, or ones in memory.

A recorded connection is a real socket with a tap; a replayed one is made of the recorded answer.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from httptools import HttpParserError

from wiretape.adapters.http1.messages import RequestReader
from wiretape.adapters.http1.send_playback import LINGER_SECONDS, response_parts
from wiretape.adapters.inprocess.active_context import ActiveContext
from wiretape.adapters.inprocess.sockets.taps import ExchangeTap
from wiretape.matching.playback import Playback
from wiretape.matching.values import LiveRequest
from wiretape.model.http import Ended, Headers

_CLAIMED: Final = "_wiretape_claimed"


@contextmanager
def claimed(conn: Any) -> Iterator[None]:
    """Let a library's own patch handle a connection: the patch of `http.client` below it ignores the connection."""
    conn.__dict__[_CLAIMED] = True
    try:
        yield
    finally:
        conn.__dict__.pop(_CLAIMED, None)


def is_claimed(conn: Any) -> bool:
    return _CLAIMED in conn.__dict__


def untapped(sock: Any) -> Any:
    """Return a socket without the tap of an earlier exchange."""
    return sock.real if isinstance(sock, TappedSocket) else sock


class TappedSocket:
    """A socket that passes its bytes to a tap. Everything else is done by the real one."""

    def __init__(self, real: Any, tap: ExchangeTap) -> None:
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
    def __init__(self, raw: Any, tap: ExchangeTap) -> None:
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


class MemorySocket:
    """Reads a request and returns its recorded answer. `unreachable` makes the library's error for no connection."""

    def __init__(self, replaying: ActiveContext, url: str, unreachable: Callable[[str], Exception]) -> None:
        self._replaying = replaying
        self._url = url
        self._unreachable = unreachable
        self._body: list[bytes] = []
        self._reader = RequestReader(self._body.append)
        self._shown: Playback | None = None

    def sendall(self, data: Any, *flags: int) -> None:
        try:
            self._reader.feed(bytes(data))
        except HttpParserError as error:
            raise self._unreachable(f"wiretape could not read this as an HTTP/1.1 request: {error}") from None
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
            raise self._unreachable("Failed to establish a new connection (as recorded)")


class _PlayedFile(io.RawIOBase):
    """A recorded answer, read as from a socket: each read returns no more than has arrived by then."""

    def __init__(self, shown: Playback) -> None:
        self._shown = shown
        self._chunks = response_parts(shown)
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
