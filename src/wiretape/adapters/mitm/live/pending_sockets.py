"""Holds the calls of WebSockets that are recorded: the message that asks, and the message that ends the answer.

mitmproxy hands on one message of a connection at a time: while one waits here, all that come after it on the same
connection wait behind it, and leave in their order. Nothing of a message is changed.
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

_WAYS: frozenset[Action] = frozenset({"delay"})
_LOOK_AT = 8  # messages of a connection that are looked at for a format
_CALLS = 100_000  # the debugger calls a connection's calls by numbers from so many times its own number on


@dataclass(slots=True, eq=False)
class _Socket:
    """One connection. `last`: how many of its calls have begun."""

    exchange: Exchange  # its handshake
    messages: list[WsMessage] = field(default_factory=list)  # which have crossed it by now
    follower: SocketFollower | None = None
    last: int = 0


class HeldSockets:
    """`heard` is to be waited for with each message before it is passed on."""

    def __init__(self, queue: DecisionQueue, exchanges: LiveExchanges) -> None:
        self._queue = queue
        self._exchanges = exchanges
        self._sockets: dict[int, _Socket] = {}

    def tells_of(self, x: int) -> bool:
        """Whether the debugger knows the calls of this exchange from here."""
        socket = self._sockets.get(x)
        return socket is not None and socket.follower is not None

    def over(self, exchange: Exchange) -> None:
        """A connection has ended, on whatever thread that is told: calls that have no answer by now get none, and
        nobody waits for those that are held."""
        socket = self._sockets.pop(exchange.number, None)
        if socket is None or socket.follower is None:
            return
        left, last = socket.follower.rest(exchange), socket.last
        live, now = self._queue.live, self._exchanges.now

        def tell() -> None:
            live.websocket_opened(replace(socket.exchange, ended=exchange.ended, ended_at=now), socket.messages)
            for part in range(last + 1):
                live.client_left(exchange.number * _CALLS + part)
            for call in left:
                number = _number_of(call)
                before = live.exchanges.get(number)
                if before is not None:
                    ended = call.ended or exchange.ended
                    told = replace(call, at=before.at, ended=ended, ended_at=now)
                    live.answer_known(replace(before, ended=ended, ended_at=now), call=told)

        self._queue.run_soon(tell)

    async def heard(self, flow: http.HTTPFlow, x: int) -> None:
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
            if (call.part or 0) > socket.last:  # the server began it by itself
                socket.last = call.part or 0
                await self._queue.run(self._beginning(call, b""))
            await self._answered(call, flow)

    def _handshake(self, flow: http.HTTPFlow, x: int) -> Exchange:
        asked = LiveRequest(flow.request.method, flow.request.url, Headers(pairs_of(flow.request.headers)))
        opened = self._exchanges.opened(x, asked)
        headers = Headers(pairs_of(flow.response.headers) if flow.response is not None else ())
        return replace(opened, response=Response(101, headers, opened.at))

    async def _followed(self, socket: _Socket, message: WsMessage) -> SocketFollower | None:
        """What follows a connection, once one of its first messages shows a format."""
        if socket.follower is None and len(socket.messages) <= _LOOK_AT:
            found = default_registry().socket_format(replace(socket.exchange, messages=(message,)))
            if found is not None:
                socket.follower = found.follow()
                for before in socket.messages[:-1]:  # its calls name their messages by how many came before
                    socket.follower.feed(socket.exchange, before)
                await self._queue.run(lambda: self._queue.live.websocket_opened(socket.exchange, socket.messages))
        return socket.follower

    async def _asked(self, call: ModelCall, data: bytes, flow: http.HTTPFlow) -> None:
        await self._queue.run(self._beginning(call, data))
        if not await self._wait(_number_of(call), flow):
            assert flow.websocket is not None
            flow.websocket.messages[-1].drop()  # nobody would hear what a model is paid for

    def _beginning(self, call: ModelCall, data: bytes) -> Callable[[], None]:
        """Tells the debugger of a call. `data`: the message that asks."""
        number, shake = _number_of(call), call.headers
        opened = self._exchanges.opened(number, LiveRequest("GET", call.url, Headers(shake), data))
        asked = replace(call, at=opened.at, response=None, ended=None, ended_at=None)
        live = self._queue.live

        def begin() -> None:
            live.request_started(opened, patience(Headers(shake)), call=asked)
            live.set_actions(number, _WAYS)

        return begin

    async def _answered(self, call: ModelCall, flow: http.HTTPFlow) -> None:
        number, live, now = _number_of(call), self._queue.live, self._exchanges.now

        def known() -> None:
            before = live.exchanges[number]
            told = replace(call, at=before.at, ended_at=now)
            answer = replace(before, response=Response(200, Headers(), now), ended=Ended.COMPLETE, ended_at=now)
            live.answer_known(answer, _WAYS, call=told)

        await self._queue.run(known)
        await self._wait(number, flow)
        await self._queue.run(lambda: live.settled(number))

    async def _wait(self, number: int, flow: http.HTTPFlow) -> bool:
        """Until a person has decided. False: its client has left meanwhile."""
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
    """Of the exchange that stands for one call of a connection. The connection's own is not taken by it."""
    return call.exchange * _CALLS + (call.part or 0)
