"""Sends one answer of the replay server: its pauses, its pieces, and the way it breaks off. Waits; decides nothing."""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any, TypeAlias, TypeVar

from wiretape.matching.playback import Playback

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
T = TypeVar("T")

# In a request's scope, beside what ASGI says
TRANSPORT = "wiretape.transport"  # of its connection
SAID_ALL = "wiretape.said_all"  # an asyncio.Event: the client says no more on it; it may still listen
LISTENS_S = 60.0  # a client that says no more is taken to listen for no longer than this
LINGER_SECONDS = 2.0  # how long a client that hung up in the recording is given to do so again
KEEP_ALIVE_SECONDS = 10.0  # a held stream says so often that it lives; clients wait for five minutes, some for one
COMMENT = b": wiretape holds this answer\n\n"
_FAIR = 32  # so many events of one answer, then the other connections have their turn
BEFORE_RESET_MS = 50  # what was written before is given so long to arrive
_NO_LINGER = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)  # closing discards and resets


class ClientGone(Exception):
    """The client hung up: nothing more is to be sent."""


class Sending:
    """One answer. Pauses end at once when the client goes. `on_reset` resets what stands between client and server.

    A client that says no more may listen still, or have gone: only writing to it tells. Where something is written
    soon, that is waited for; where nothing may come for long, who says no more is taken to have gone.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send, on_reset: Callable[[], None] | None = None) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._on_reset = on_reset
        self._gone: asyncio.Task[None] | None = None
        self._silent: asyncio.Task[None] | None = None
        self._begun: tuple[int | None, str] | None = None  # the head that went out while the answer was held

    async def held(self, answer: Awaitable[T], shown: Playback) -> T:
        """Wait for an answer. Where `shown`, which would be sent without it, is a stream, keep the client waiting."""
        task = asyncio.ensure_future(answer)
        gone = self._says_no_more()
        try:
            while True:
                await asyncio.wait({task, gone}, timeout=KEEP_ALIVE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                if task.done():
                    return task.result()
                if gone.done():
                    raise ClientGone
                if _may_have_comments(shown) and not self._knows_no_chunks:
                    await self._keep_alive(shown)
        finally:
            task.cancel()

    async def play(self, shown: Playback) -> None:
        try:
            await self._pause(shown.pause)
            if shown.status is not None:
                await self._answer(shown, shown.status)
            if shown.linger:
                await self._linger()
        except ClientGone:
            self.close()
            return
        if shown.reset:
            await self._reset()
        elif shown.cut:
            self.close()

    def over(self) -> None:
        """Nothing more is to be sent."""
        for task in (self._gone, self._silent):
            if task is not None:
                task.cancel()

    def close(self) -> None:
        """End the connection without ending the answer; what was written before is still delivered."""
        transport: asyncio.Transport | None = self._scope.get(TRANSPORT)
        if transport is not None:
            transport.close()

    async def _answer(self, shown: Playback, status: int) -> None:
        if self._begun is None:
            await self._head(shown)
        elif self._begun != (status, _content_type(shown)):
            self.close()  # another head can no longer be sent
            return
        if not shown.streamed:
            body = b"".join(piece.data for piece in shown.pieces)
            await self._send({"type": "http.response.body", "body": body, "more_body": False})
            return
        for number, piece in enumerate(shown.pieces):
            await self._pause(piece.pause)
            if self._is_closing:
                raise ClientGone  # asyncio would complain of each further piece
            if piece.data:
                await self._send({"type": "http.response.body", "body": piece.data, "more_body": True})
            if number % _FAIR == 0:
                await asyncio.sleep(0)
        if not shown.cut:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _head(self, shown: Playback) -> None:
        headers = [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in shown.headers]
        if shown.streamed and self._knows_no_chunks:
            # One byte that never comes: so a client without chunks sees that the answer breaks off, too.
            length = sum(len(piece.data) for piece in shown.pieces) + (1 if shown.cut else 0)
            headers.append((b"content-length", b"%d" % length))
        await self._send({"type": "http.response.start", "status": shown.status, "headers": headers})

    @property
    def _is_closing(self) -> bool:
        transport: asyncio.Transport | None = self._scope.get(TRANSPORT)
        return transport is not None and transport.is_closing()

    @property
    def _knows_no_chunks(self) -> bool:
        """The client speaks HTTP/1.0: its answers have a length, or end with the connection."""
        return bool(self._scope.get("http_version") == "1.0")

    async def _keep_alive(self, shown: Playback) -> None:
        if self._begun is None:
            await self._head(shown)
            self._begun = shown.status, _content_type(shown)
        await self._send({"type": "http.response.body", "body": COMMENT, "more_body": True})

    async def _pause(self, milliseconds: float) -> None:
        if milliseconds <= 0:
            return
        until = time.monotonic() + milliseconds / 1000
        if not await _ends(self._says_no_more(), milliseconds / 1000):
            return
        left = until - time.monotonic()
        if left > LISTENS_S or await _ends(self._goes(), left):
            raise ClientGone

    async def _linger(self) -> None:
        if await _ends(self._says_no_more(), LINGER_SECONDS):
            raise ClientGone

    def _goes(self) -> asyncio.Task[None]:
        if self._gone is None:
            self._gone = asyncio.ensure_future(self._wait_until_gone())
        return self._gone

    def _says_no_more(self) -> asyncio.Task[None]:
        gone = self._goes()  # it reads on, where too much had come
        said_all: asyncio.Event | None = self._scope.get(SAID_ALL)
        if said_all is None:
            return gone
        if self._silent is None:
            self._silent = asyncio.ensure_future(_set(said_all))
        return self._silent

    async def _wait_until_gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def _reset(self) -> None:
        """End the connection with a TCP reset; what was written before is given the time to arrive."""
        transport: asyncio.Transport | None = self._scope.get(TRANSPORT)
        if transport is None:
            return
        with suppress(ClientGone):
            await self._pause(BEFORE_RESET_MS)
        if self._on_reset is not None:
            self._on_reset()
        reset(transport)


async def _set(event: asyncio.Event) -> None:
    await event.wait()


async def _ends(task: asyncio.Task[None], seconds: float) -> bool:
    """Whether it does within so many seconds."""
    await asyncio.wait({task}, timeout=max(0, seconds))
    return task.done()


def close_by_reset(transport: asyncio.BaseTransport) -> None:
    """Let the end of a connection be a TCP reset."""
    connection = transport.get_extra_info("socket")
    with suppress(OSError):  # it is gone already
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)


def reset(transport: asyncio.BaseTransport) -> None:
    """End a connection with a TCP reset."""
    close_by_reset(transport)
    if isinstance(transport, asyncio.WriteTransport):
        transport.abort()


def _may_have_comments(shown: Playback) -> bool:
    """Whether it is a stream of events."""
    return shown.streamed and _content_type(shown).startswith("text/event-stream")


def _content_type(shown: Playback) -> str:
    return next((value for name, value in shown.headers if name == "content-type"), "")
