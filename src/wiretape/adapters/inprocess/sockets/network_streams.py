"""WebSockets of httpx2: the network streams of their connections, with a tap or played from a tape.

They have the methods of httpcore's streams, for synchronous and asynchronous clients.
"""

from __future__ import annotations

import contextlib
import functools
import socket
from collections.abc import Callable
from typing import Any

from wiretape.adapters.inprocess.sockets.taps import WebSocketTap


class TappedStream:
    """A network stream that passes its bytes to a tap, for synchronous clients."""

    def __init__(self, real: Any, tap: WebSocketTap) -> None:
        self._real = real
        self._tap = tap

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def read(self, max_bytes: int, timeout: float | None = None) -> Any:
        data = self._real.read(max_bytes, timeout)
        self._received(data)
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> Any:
        self._tap.sent(buffer)
        return self._real.write(buffer, timeout)

    def close(self) -> Any:
        self._tap.hung_up()
        return self._real.close()

    def _received(self, data: bytes) -> None:
        if data:
            self._tap.received(data)
        else:
            self._tap.eof()


class AsyncTappedStream(TappedStream):
    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data: bytes = await self._real.read(max_bytes, timeout)
        self._received(data)
        return data

    async def aclose(self) -> None:
        self._tap.hung_up()
        await self._real.aclose()


class PlayedStream:
    """A socket as a network stream. `errors`: httpcore's classes for failed reads, failed writes and timeouts."""

    def __init__(self, sock: socket.socket, errors: tuple[Any, Any, Any]) -> None:
        self._sock = sock
        self._read_error, self._write_error, self._timeout = errors

    def read(self, max_bytes: int, timeout: float | None = None) -> Any:
        return self._guarded(self._read_error, timeout, lambda: self._sock.recv(max_bytes))

    def write(self, buffer: bytes, timeout: float | None = None) -> Any:
        self._guarded(self._write_error, timeout, lambda: self._sock.sendall(buffer))

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)  # a reader in another thread returns
        self._sock.close()

    def get_extra_info(self, info: str) -> Any:
        return self._sock if info == "socket" else None

    def _guarded(self, error: Any, timeout: float | None, call: Callable[[], Any]) -> Any:
        try:
            self._sock.settimeout(timeout)
            return call()
        except TimeoutError as late:
            raise self._timeout(str(late)) from late
        except OSError as broken:
            raise error(str(broken)) from broken


class AsyncPlayedStream(PlayedStream):
    """Waits with anyio, as httpcore does, on asyncio or trio."""

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        import anyio

        data: bytes = await self._awaited(
            self._read_error, timeout, lambda: self._sock.recv(max_bytes), anyio.wait_readable
        )
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        import anyio

        rest = memoryview(buffer)
        while rest:
            send = functools.partial(self._sock.send, rest)
            sent = await self._awaited(self._write_error, timeout, send, anyio.wait_writable)
            rest = rest[sent:]

    async def aclose(self) -> None:
        self.close()

    async def _awaited(self, error: Any, timeout: float | None, call: Callable[[], Any], ready: Any) -> Any:
        import anyio

        try:
            self._sock.setblocking(False)
            with anyio.fail_after(timeout):
                while True:
                    try:
                        return call()
                    except BlockingIOError:
                        await ready(self._sock)
        except TimeoutError as late:
            raise self._timeout(str(late)) from late
        except (OSError, anyio.ClosedResourceError) as broken:
            raise error(str(broken)) from broken
