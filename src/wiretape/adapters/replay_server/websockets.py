"""Plays a recorded WebSocket on a connection of the replay server, from the handshake on."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from typing import Any, Final, TypeAlias

from wiretape.adapters.http1.send_playback import BEFORE_RESET_MS
from wiretape.adapters.http1.server import reset
from wiretape.adapters.http1.websocket_replay import ConnectionEnd, WebSocketReplay
from wiretape.matching.sockets.playing import SocketPlay

_CLOSE_TIMEOUT_S: Final = 5.0  # for the client's answer to a close
Hold: TypeAlias = Callable[[str | bytes], Coroutine[Any, Any, object]]


class WebSocketConnection(asyncio.Protocol):
    """One connection. Messages of the client are read as they arrive, during pauses, too.

    `on_message` is called for each message after it was matched. `hold` is awaited before its answer is sent.
    `on_reset` is called before the connection is reset.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        play: SocketPlay,
        pace: float,
        on_message: Callable[[], None],
        hold: Hold | None = None,
        lock: AbstractContextManager[Any] | None = None,
        on_reset: Callable[[], None] | None = None,
    ) -> None:
        self._transport = transport
        self._http = transport.get_protocol()
        self._on_reset = on_reset
        self._on_message = on_message
        self._hold = hold
        self._to_hold: deque[str | bytes] = deque()
        self._replay = WebSocketReplay(play, self._note_message, lock, pace)
        self._received = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._gone = asyncio.Event()

    async def run(self, handshake: bytes, early: bytes = b"") -> None:
        """Play until one side closes. `early`: bytes that the client sent behind its handshake, before the response."""
        if self._transport.is_closing():
            return
        self._transport.set_protocol(self)
        self._transport.write(handshake)
        try:
            self.data_received(early)
            await self._play()
        finally:
            self._transport.close()
        await self._gone.wait()

    async def _play(self) -> None:
        while not self._is_over:
            self._received.clear()
            await self._send_due()
            end = None if self._received.is_set() else self._replay.end()
            if end is not None:
                await self._end(end)
                return
            await self._received.wait()

    @property
    def _is_over(self) -> bool:
        return self._replay.over or self._gone.is_set() or self._transport.is_closing()

    async def _send_due(self) -> None:
        while self._to_hold and self._hold is not None:
            await self._unless_gone(asyncio.ensure_future(self._hold(self._to_hold.popleft())))
        for due in self._replay.due():
            if due.pause > 0:
                await self._pause(due.pause)
            if self._is_over:
                return
            self._transport.write(due.data)
            await self._writable.wait()

    async def _end(self, end: ConnectionEnd) -> None:
        if end.silent:
            await self._gone.wait()
        elif end.reset:
            await self._pause(BEFORE_RESET_MS)
            if self._on_reset is not None:
                self._on_reset()
            reset(self._transport)
        elif end.data:
            self._transport.write(end.data)
            await self._wait_for_close()

    async def _wait_for_close(self) -> None:
        deadline = asyncio.ensure_future(asyncio.sleep(_CLOSE_TIMEOUT_S))
        while not (self._is_over or deadline.done()):
            self._received.clear()
            received = asyncio.ensure_future(self._received.wait())
            await asyncio.wait({deadline, received}, return_when=asyncio.FIRST_COMPLETED)
            received.cancel()
        deadline.cancel()

    async def _pause(self, milliseconds: float) -> None:
        await self._unless_gone(asyncio.ensure_future(asyncio.sleep(milliseconds / 1000)))

    async def _unless_gone(self, waiting: asyncio.Future[Any]) -> None:
        """Wait, but no longer than until the client disconnects."""
        gone = asyncio.ensure_future(self._gone.wait())
        try:
            await asyncio.wait({waiting, gone}, return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                waiting.result()
        finally:
            waiting.cancel()
            gone.cancel()

    def _note_message(self, message: str | bytes) -> None:
        if self._hold is not None:
            self._to_hold.append(message)
        self._on_message()

    # the transport's callbacks

    def data_received(self, data: bytes) -> None:
        answer = self._replay.receive(data)
        if answer and not self._transport.is_closing():
            self._transport.write(answer)
        self._received.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone.set()
        self._received.set()
        self._writable.set()
        self._http.connection_lost(exc)
