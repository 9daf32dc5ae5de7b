"""Plays a recorded WebSocket on a connection of the replay server, which is taken over from HTTP for it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

from wiretape.adapters.http1.sending import BEFORE_RESET_MS
from wiretape.adapters.http1.server import reset
from wiretape.adapters.http1.websocket_talk import End, SocketTalk
from wiretape.matching.sockets.playing import SocketPlay

_CLOSE_PATIENCE_S = 5.0  # for the client's answer to a close
Hold: TypeAlias = Callable[[str | bytes], Coroutine[Any, Any, object]]


class PlayedSocket(asyncio.Protocol):
    """One connection, from its handshake on. What the client sends is heard as it comes, during pauses, too.

    `on_message` is told of each message that was heard. `hold` is waited for before what is due for it is sent.
    `on_reset` resets what stands between client and server.
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
        self._before = transport.get_protocol()
        self._on_reset = on_reset
        self._on_message = on_message
        self._hold = hold
        self._waiting: deque[str | bytes] = deque()  # messages that were heard, and not held yet
        self._talk = SocketTalk(play, self._heard, lock, pace)
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._gone = asyncio.Event()

    async def play(self, handshake: bytes, early: bytes = b"") -> None:
        """Until one side closes. `early`: what the client sent behind its handshake, without waiting for the answer."""
        if self._transport.is_closing():
            return
        self._transport.set_protocol(self)
        self._transport.write(handshake)
        try:
            self.data_received(bytes(early))
            await self._talk_on()
        finally:
            self._transport.close()
        await self._gone.wait()

    async def _talk_on(self) -> None:
        while not self._ended:
            self._news.clear()
            await self._say()
            end = None if self._news.is_set() else self._talk.ends()
            if end is not None:
                await self._end(end)
                return
            await self._news.wait()

    @property
    def _ended(self) -> bool:
        return self._talk.over or self._gone.is_set() or self._transport.is_closing()

    async def _say(self) -> None:
        while self._waiting and self._hold is not None:
            await self._unless_gone(asyncio.ensure_future(self._hold(self._waiting.popleft())))
        for due in self._talk.due():
            if due.pause > 0:
                await self._unless_gone(asyncio.ensure_future(asyncio.sleep(due.pause / 1000)))
            if self._ended:
                return
            self._transport.write(due.data)
            await self._room.wait()

    async def _end(self, end: End) -> None:
        if end.silent:
            await self._gone.wait()
        elif end.reset:
            await self._unless_gone(asyncio.ensure_future(asyncio.sleep(BEFORE_RESET_MS / 1000)))
            if self._on_reset is not None:
                self._on_reset()
            reset(self._transport)
        elif end.data:
            self._transport.write(end.data)
            await self._answer_to_close()

    async def _answer_to_close(self) -> None:
        waiting = asyncio.ensure_future(asyncio.sleep(_CLOSE_PATIENCE_S))
        while not (self._ended or waiting.done()):
            self._news.clear()
            news = asyncio.ensure_future(self._news.wait())
            await asyncio.wait({waiting, news}, return_when=asyncio.FIRST_COMPLETED)
            news.cancel()
        waiting.cancel()

    async def _unless_gone(self, waited: asyncio.Future[Any]) -> None:
        """Wait, but no longer than the client does."""
        gone = asyncio.ensure_future(self._gone.wait())
        try:
            await asyncio.wait({waited, gone}, return_when=asyncio.FIRST_COMPLETED)
            if waited.done():
                waited.result()
        finally:
            waited.cancel()
            gone.cancel()

    def _heard(self, message: str | bytes) -> None:
        if self._hold is not None:
            self._waiting.append(message)
        self._on_message()

    # what the transport calls

    def data_received(self, data: bytes) -> None:
        answer = self._talk.heard(data)
        if answer and not self._transport.is_closing():
            self._transport.write(answer)
        self._news.set()

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone.set()
        self._news.set()
        self._room.set()
        self._before.connection_lost(exc)
