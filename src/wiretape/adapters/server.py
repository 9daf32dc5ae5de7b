"""The replay server: a lean ASGI app on a loopback port, and uvicorn to run it. Holds no matching of its own."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import struct
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any, TypeAlias

from wiretape.adapters.first_line import FirstLine
from wiretape.adapters.routes import route_url
from wiretape.errors import UsageError
from wiretape.model.http import Headers
from wiretape.replay.playback import Playback, playback
from wiretape.replay.session import ReplaySession
from wiretape.replay.values import LiveRequest, Outcome

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

TRANSPORT = "wiretape.transport"
_FAIR = 32  # so many events of one answer, then the other connections have their turn
_BEFORE_RESET_MS = 50
_NO_LINGER = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)  # closing discards and resets
LINGER_SECONDS = 2.0  # how long a client that hung up in the recording is given to do so again


class ReplayApp:
    """Answers HTTP requests from a session. `on_outcome` is told what became of each, after the answer was sent."""

    def __init__(
        self,
        session: ReplaySession,
        pace: float = 0,
        upstream: str | None = None,
        on_outcome: Callable[[Outcome], None] | None = None,
    ) -> None:
        self._session = session
        self._pace = pace
        self._upstream = upstream
        self._on_outcome = on_outcome

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        body = await _body(receive)
        if body is None:
            return  # the client went away before it had sent everything
        outcome = self._session.answer(self._request(scope, body))
        try:
            await _Sending(scope, receive, send).play(playback(outcome, self._pace))
        finally:
            if self._on_outcome is not None:
                self._on_outcome(outcome)

    def _request(self, scope: Scope, body: bytes) -> LiveRequest:
        target = scope.get("raw_path", b"").decode("latin-1") or scope["path"]
        if scope["query_string"]:
            target += "?" + scope["query_string"].decode("latin-1")
        headers = Headers((name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"])
        # A target that names no host may be meant for any recorded one.
        return LiveRequest(scope["method"], route_url(target, self._upstream) or target, headers, body)


async def _body(receive: Receive) -> bytes | None:
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


class _ClientGone(Exception):
    """The client hung up: nothing more is to be sent."""


class _Sending:
    """Sends one playback. Pauses end at once when the client goes."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._gone: asyncio.Task[None] | None = None

    async def play(self, shown: Playback) -> None:
        try:
            await self._pause(shown.pause)
            if shown.status is not None:
                await self._answer(shown, shown.status)
            if shown.linger:
                await self._pause(LINGER_SECONDS * 1000)
        except _ClientGone:
            return
        finally:
            if self._gone is not None:
                self._gone.cancel()
        if shown.reset:
            await self._reset()
        elif shown.cut:
            self._close()

    async def _answer(self, shown: Playback, status: int) -> None:
        headers = [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in shown.headers]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        if not shown.streamed:
            body = b"".join(piece.data for piece in shown.pieces)
            await self._send({"type": "http.response.body", "body": body, "more_body": False})
            return
        for number, piece in enumerate(shown.pieces):
            await self._pause(piece.pause)
            if piece.data:
                await self._send({"type": "http.response.body", "body": piece.data, "more_body": True})
            if number % _FAIR == 0:
                await asyncio.sleep(0)
        if not shown.cut:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _pause(self, milliseconds: float) -> None:
        if milliseconds <= 0:
            return
        if self._gone is None:
            self._gone = asyncio.ensure_future(self._wait_until_gone())
        await asyncio.wait({self._gone}, timeout=milliseconds / 1000)
        if self._gone.done():
            raise _ClientGone

    async def _wait_until_gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    def _close(self) -> None:
        """End the connection without ending the answer; what was written before is still delivered."""
        transport: asyncio.Transport | None = self._scope.get(TRANSPORT)
        if transport is not None:
            transport.close()

    async def _reset(self) -> None:
        """End the connection with a TCP reset; what was written before is given the time to arrive."""
        transport: asyncio.Transport | None = self._scope.get(TRANSPORT)
        if transport is None:
            return
        with suppress(_ClientGone):
            await self._pause(_BEFORE_RESET_MS)
        connection = transport.get_extra_info("socket")
        with suppress(OSError):  # it is gone already
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        transport.abort()


def listen(port: int = 0) -> socket.socket:
    """A listening socket on 127.0.0.1; port 0 takes any that is free."""
    # The protocol is named because asyncio turns Nagle's delay off only where it is: else every answer waits 40 ms.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(("127.0.0.1", port))
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            busy = f"port {port} on 127.0.0.1 is in use: choose another with --port, or none for any free one"
            raise UsageError(busy) from None
        raise UsageError(
            f"cannot listen on port {port}: {error.strerror or error}\n  take another one with --port, or leave it out"
        ) from None
    listening.listen(512)
    return listening


async def serve(app: ReplayApp, listening: socket.socket, stop: asyncio.Event) -> None:
    """Serve until `stop` is set; connections that are still open then are closed."""
    import uvicorn
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

    class Protocol(HttpToolsProtocol):
        """Hands its transport to the app: a recorded cut must be cut here, too. Takes methods of any name."""

        def __init__(self, *values: Any, **named: Any) -> None:
            super().__init__(*values, **named)
            self._first_line: FirstLine | None = FirstLine()  # None while a message is on its way
            self._method = ""

        def data_received(self, data: bytes) -> None:
            if self._first_line is not None:
                data = self._first_line.known(data)
                self._method = self._first_line.method
            if data:
                super().data_received(data)

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._first_line = None
            scope: Any = self.scope
            scope[TRANSPORT] = self.transport

        def on_headers_complete(self) -> None:
            super().on_headers_complete()
            if self._method:  # the app runs later
                self.scope["method"] = self._method

        def on_message_complete(self) -> None:
            super().on_message_complete()
            self._first_line, self._method = FirstLine(), ""

    for name in ("uvicorn.error", "uvicorn.access", "uvicorn.asgi"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)  # an answer cut on purpose is no error
    config = uvicorn.Config(
        app,
        http=Protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    serving = asyncio.ensure_future(server.serve(sockets=[listening]))
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    server.should_exit = True
    with suppress(asyncio.CancelledError):
        await serving
    stopping.cancel()
