"""Holds the calls of recorded WebSockets: at the message that starts a call, and at the last of its answer.

mitmproxy passes on one message of a connection at a time: while one is held here, later ones of the connection wait,
and keep their order. Messages are not changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from mitmproxy import http

from wiretape.adapters.live.decision_queue import ClientLeft, DecisionQueue
from wiretape.adapters.live.exchanges import LiveExchanges, patience
from wiretape.adapters.mitm._compat.held_answers import has_left
from wiretape.adapters.mitm.addon import pairs_of
from wiretape.debug.live.pending_calls import Action, Delay
from wiretape.matching.values import LiveRequest
from wiretape.model.call import ModelCall
from wiretape.model.http import (
    Ended,
    Exchange,
    Headers,
    Response,
    WsMessage,
)
from wiretape.wire.base import SocketFollower
from wiretape.wire.registry import default_registry

_ACTIONS: frozenset[Action] = frozenset({"delay"})
_RECOGNIZED_WITHIN = 8  # messages of a connection
_CALLS = 100_000  # calls of connection 7 have the numbers 700,001, 700,002, … in the debugger


@dataclass(slots=True, eq=False)
class _Socket:
    """One connection. `last`: how many of its calls have begun."""

    exchange: Exchange  # its handshake
    messages: list[WsMessage] = field(default_factory=list)  # which have crossed it by now
    follower: SocketFollower | None = None
    last: int = 0


class PendingSockets:
    """`message` is to be awaited before a message is passed on."""

    def __init__(self, queue: DecisionQueue, exchanges: LiveExchanges) -> None:
        self._queue = queue
        self._exchanges = exchanges
        self._sockets: dict[int, _Socket] = {}

    def knows(self, x: int) -> bool:
        """Return whether this reports the calls of an exchange to the debugger."""
        socket = self._sockets.get(x)
        return socket is not None and socket.follower is not None

    def ended(self, exchange: Exchange) -> None:
        """End the calls of a connection that are unanswered or held. Called on any thread."""
        socket = self._sockets.pop(exchange.number, None)
        if socket is None or socket.follower is None:
            return
        left, last = socket.follower.rest(exchange), socket.last
        live, now = self._queue.live, self._exchanges.now

        def update() -> None:
            live.websocket_opened(replace(socket.exchange, ended=exchange.ended, ended_at=now), socket.messages)
            for part in range(last + 1):
                live.client_left(exchange.number * _CALLS + part)
            for call in left:
                number = _number_of(call)
                before = live.exchanges.get(number)
                if before is not None:
                    ended = call.ended or exchange.ended
                    final = replace(call, at=before.at, ended=ended, ended_at=now)
                    live.answer_known(replace(before, ended=ended, ended_at=now), call=final)

        self._queue.run_soon(update)

    async def message(self, flow: http.HTTPFlow, x: int) -> None:
        assert flow.websocket is not None
        said = flow.websocket.messages[-1]
        message = WsMessage(
            self._exchanges.now,
            "client" if said.from_client else "server",
            self._exchanges.message(said.text if said.is_text else said.content),
        )
        socket = self._sockets.get(x)
        if socket is None:
            socket = self._sockets[x] = _Socket(self._handshake(flow, x))
        socket.messages.append(message)
        follower = await self._followed(socket, message)
        if follower is None:
            return
        ended = follower.feed(socket.exchange, message)
        if message.sender == "client":
            begun = [call for call in follower.rest(socket.exchange) if (call.part or 0) > socket.last]
            for call in begun:
                socket.last = call.part or 0
                await self._asked(call, said.content, flow)
        for call in ended:
            if (call.part or 0) > socket.last:  # the server started it
                socket.last = call.part or 0
                await self._queue.run(self._beginning(call, b""))
            await self._answered(call, flow)

    def _handshake(self, flow: http.HTTPFlow, x: int) -> Exchange:
        asked = LiveRequest(flow.request.method, flow.request.url, Headers(pairs_of(flow.request.headers)))
        opened = self._exchanges.opened(x, asked)
        headers = Headers(pairs_of(flow.response.headers) if flow.response is not None else ())
        return replace(opened, response=Response(101, headers, opened.at))

    async def _followed(self, socket: _Socket, message: WsMessage) -> SocketFollower | None:
        """Return the follower of a connection's calls; None until a message shows its wire format."""
        if socket.follower is None and len(socket.messages) <= _RECOGNIZED_WITHIN:
            found = default_registry().socket_format(replace(socket.exchange, messages=(message,)))
            if found is not None:
                socket.follower = found.follow()
                for before in socket.messages[:-1]:  # calls name their messages by position
                    socket.follower.feed(socket.exchange, before)
                await self._queue.run(lambda: self._queue.live.websocket_opened(socket.exchange, socket.messages))
        return socket.follower

    async def _asked(self, call: ModelCall, data: bytes, flow: http.HTTPFlow) -> None:
        await self._queue.run(self._beginning(call, data))
        if not await self._wait(_number_of(call), flow):
            assert flow.websocket is not None
            flow.websocket.messages[-1].drop()  # do not pay for an answer without a reader

    def _beginning(self, call: ModelCall, data: bytes) -> Callable[[], None]:
        """Return a function that reports a new call to the debugger. `data`: the message that starts it."""
        number, shake = _number_of(call), call.headers
        opened = self._exchanges.opened(number, LiveRequest("GET", call.url, Headers(shake), data))
        asked = replace(call, at=opened.at, response=None, ended=None, ended_at=None)
        live = self._queue.live

        def begin() -> None:
            live.request_started(opened, patience(Headers(shake)), call=asked)
            live.set_actions(number, _ACTIONS)

        return begin

    async def _answered(self, call: ModelCall, flow: http.HTTPFlow) -> None:
        number, live, now = _number_of(call), self._queue.live, self._exchanges.now

        def known() -> None:
            before = live.exchanges[number]
            final = replace(call, at=before.at, ended_at=now)
            answer = replace(before, response=Response(200, Headers(), now), ended=Ended.COMPLETE, ended_at=now)
            live.answer_known(answer, _ACTIONS, call=final)

        await self._queue.run(known)
        await self._wait(number, flow)
        await self._queue.run(lambda: live.settled(number))

    async def _wait(self, number: int, flow: http.HTTPFlow) -> bool:
        """Wait for a decision; return False if the client has disconnected."""
        try:
            decision = await self._queue.decision(
                lambda release: self._queue.live.hold_if_wanted(number, release), lambda: has_left(flow)
            )
        except ClientLeft:
            await self._queue.run(lambda: self._queue.live.client_left(number))
            return False
        if isinstance(decision, Delay):
            await asyncio.sleep(decision.seconds)
        return True


def _number_of(call: ModelCall) -> int:
    """Return the debugger's number for one call of a connection."""
    return call.exchange * _CALLS + (call.part or 0)
