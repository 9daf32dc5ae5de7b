"""Sends a recorded answer: as one piece of bytes, as parts with pauses, or over a connection of the server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from typing import Any, Final, TypeVar

from wiretape.adapters.http1.messages import CLOSE, LAST_CHUNK, chunk, response_head
from wiretape.adapters.http1.server import HttpConnection, HttpRequest, reset
from wiretape.matching.playback import Playback

T = TypeVar("T")

LINGER_SECONDS = 2.0  # how long a client that hung up in the recording is given to do so again
KEEP_ALIVE_SECONDS = 10.0  # between the comments of a held stream; clients wait for five minutes, some for one
COMMENT: Final = b": wiretape holds this answer\n\n"
BEFORE_RESET_MS: Final = 50  # for bytes written before a reset to arrive
_HALF_CLOSED_S: Final = 60.0  # a half-closed client is taken to read for no longer than this
_FAIR: Final = 32  # events of one answer; then other connections have their turn
_MOST_EVENTS: Final = 256  # of an answer that is sent in one piece,
_MOST_STREAMED: Final = 64 * 1024  # and its bytes: as many as a connection takes without waiting for its reader
_CHUNKED: Final = (("transfer-encoding", "chunked"),)


def whole_response(shown: Playback, request: HttpRequest) -> bytes | None:
    """Write a response that needs no waiting; None if it has pauses, breaks off or is a long stream.

    Each event of a stream is a separate chunk.
    """
    if shown.status is None or shown.cut or shown.linger or shown.pause > 0:
        return None
    head = _head(shown, request)
    if not _has_body(shown.status, request):
        return head
    if not shown.streamed:
        return head + (shown.pieces[0].data if len(shown.pieces) == 1 else b"".join(one.data for one in shown.pieces))
    if len(shown.pieces) > _MOST_EVENTS or any(piece.pause > 0 for piece in shown.pieces):
        return None
    if sum(len(piece.data) for piece in shown.pieces) > _MOST_STREAMED:
        return None
    if request.version == "1.0":
        return head + b"".join(piece.data for piece in shown.pieces)
    return b"".join([head, *(chunk(piece.data) for piece in shown.pieces), LAST_CHUNK])


def response_parts(shown: Playback) -> Iterator[tuple[float, bytes]]:
    """Yield a response in parts, as (pause in milliseconds, bytes). The connection ends after it."""
    if shown.status is None:
        yield shown.pause, b""
        return
    encoding = _CHUNKED if shown.streamed else ()
    yield shown.pause, response_head(shown.status, (*shown.headers, *CLOSE, *encoding)) + b"\r\n"
    for piece in shown.pieces:
        if piece.data:
            yield piece.pause, chunk(piece.data) if shown.streamed else piece.data
    if shown.streamed and not shown.cut:
        yield 0, LAST_CHUNK


def _head(shown: Playback, request: HttpRequest) -> bytes:
    assert shown.status is not None
    headers = tuple(shown.headers)
    if shown.streamed and _has_body(shown.status, request):
        if request.version == "1.0":
            # One byte more than is sent: a client that does not know chunks notices that the answer breaks off.
            length = sum(len(piece.data) for piece in shown.pieces) + (1 if shown.cut else 0)
            headers += (("content-length", str(length)),)
        else:
            headers += _CHUNKED
    length_of = headers[-1][1] if headers and headers[-1][0] == "content-length" else None
    if length_of is None:
        return response_head(shown.status, headers if request.keep_alive else headers + CLOSE) + b"\r\n"
    kept = headers[:-1]  # which many answers share
    head = response_head(shown.status, kept if request.keep_alive else kept + CLOSE)
    return b"%bcontent-length: %b\r\n\r\n" % (head, length_of.encode("latin-1", "replace"))


def _has_body(status: int, request: HttpRequest) -> bool:
    return request.method != "HEAD" and status >= 200 and status not in (204, 304)


class ClientGone(Exception):
    """The client hung up: nothing more is sent."""


class PlaybackSender:
    """Sends one response over a connection. Pauses end as soon as the client disconnects.

    A half-closed client may still read, or may have gone: only a write shows which. Where the next bytes are due soon
    the sender waits and writes them; where nothing is due for long, it takes the client to have gone. `on_reset` is
    called before the connection is reset.
    """

    def __init__(
        self, connection: HttpConnection, request: HttpRequest, on_reset: Callable[[], None] | None = None
    ) -> None:
        self._connection = connection
        self._request = request
        self._on_reset = on_reset
        self._sent_head: tuple[int | None, str] | None = None  # the head that was sent while the answer was held

    async def held(self, answer: Coroutine[Any, Any, T], shown: Playback) -> T:
        """Wait for an answer. While it is held, send comments if `shown`, the answer so far, is an event stream."""
        task = asyncio.ensure_future(answer)
        try:
            while True:
                await self._wait(task, self._connection.half_closed, KEEP_ALIVE_SECONDS)
                if task.done():
                    return task.result()
                if self._connection.half_closed.is_set():
                    raise ClientGone
                if _is_event_stream(shown) and self._request.version != "1.0":
                    await self._keep_alive(shown)
        finally:
            task.cancel()

    async def play(self, shown: Playback) -> None:
        """Send a response with its pauses, and end the connection as recorded."""
        try:
            await self._pause(shown.pause)
            if shown.status is not None:
                await self._send(shown, shown.status)
            if shown.linger and await _is_set_within(self._connection.half_closed, LINGER_SECONDS):
                raise ClientGone
        except ClientGone:
            self._connection.close()
            return
        if shown.reset:
            await self._reset()
        elif shown.cut:
            self._connection.close()

    async def _send(self, shown: Playback, status: int) -> None:
        if self._sent_head is None:
            await self._connection.write(_head(shown, self._request))
        elif self._sent_head != (status, _content_type(shown)):
            self._connection.close()  # another head can no longer be sent
            return
        if not _has_body(status, self._request):
            return
        chunked = self._request.version != "1.0" and (shown.streamed or self._sent_head is not None)
        frame: Callable[[bytes], bytes] = chunk if chunked else bytes
        if shown.streamed:
            await self._send_events(shown, frame)
        else:
            await self._connection.write(frame(b"".join(piece.data for piece in shown.pieces)))
        if chunked and not shown.cut:
            await self._connection.write(LAST_CHUNK)

    async def _send_events(self, shown: Playback, frame: Callable[[bytes], bytes]) -> None:
        for number, piece in enumerate(shown.pieces):
            await self._pause(piece.pause)
            if self._connection.transport.is_closing():
                raise ClientGone  # asyncio logs each further write
            await self._connection.write(frame(piece.data))
            if number % _FAIR == 0:
                await asyncio.sleep(0)

    async def _keep_alive(self, shown: Playback) -> None:
        if self._sent_head is None:
            await self._connection.write(_head(shown, self._request))
            self._sent_head = shown.status, _content_type(shown)
        await self._connection.write(chunk(COMMENT))

    async def _pause(self, milliseconds: float) -> None:
        if milliseconds <= 0:
            return
        until = time.monotonic() + milliseconds / 1000
        if not await _is_set_within(self._connection.half_closed, milliseconds / 1000):
            return
        left = until - time.monotonic()
        if left > _HALF_CLOSED_S or await _is_set_within(self._connection.gone, left):
            raise ClientGone

    async def _reset(self) -> None:
        """End the connection by a TCP reset; bytes written before are given the time to arrive."""
        with suppress(ClientGone):
            await self._pause(BEFORE_RESET_MS)
        if self._on_reset is not None:
            self._on_reset()
        reset(self._connection.transport)

    @staticmethod
    async def _wait(task: asyncio.Future[Any], event: asyncio.Event, seconds: float) -> None:
        """Wait until a task is done or an event is set, but no longer than so many seconds."""
        waiting = asyncio.ensure_future(event.wait())
        try:
            await asyncio.wait({task, waiting}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()


async def _is_set_within(event: asyncio.Event, seconds: float) -> bool:
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), max(0, seconds))
    return event.is_set()


def _is_event_stream(shown: Playback) -> bool:
    return shown.streamed and _content_type(shown).startswith("text/event-stream")


def _content_type(shown: Playback) -> str:
    return next((value for name, value in shown.headers if name == "content-type"), "")
