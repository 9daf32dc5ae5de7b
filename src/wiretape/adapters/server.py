"""The replay server: a lean ASGI app on a loopback port. Holds no matching of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from wiretape.adapters.interposing import Interpose
from wiretape.adapters.routes import route_url
from wiretape.adapters.sending import TRANSPORT, ClientGone, Receive, Scope, Send, Sending
from wiretape.adapters.socket_replaying import PlayedSocket
from wiretape.adapters.socket_talk import handshake_bytes
from wiretape.model.http import Headers
from wiretape.replay.playback import Playback, playback
from wiretape.replay.session import ReplaySession
from wiretape.replay.sockets import SocketPlay
from wiretape.replay.values import LiveRequest, Outcome

DECIDED = "wiretape.decided"


@dataclass(frozen=True, slots=True)
class Decided:
    """A request, what the session made of it, and how that is sent."""

    request: LiveRequest
    outcome: Outcome
    shown: Playback


class ReplayApp:
    """Answers HTTP requests and WebSockets from a session.

    `on_outcome` is told what became of each request after its answer was sent; of a WebSocket it is told of each call
    when the client's message has come, and of a miss. `interpose` stands between the session's answers and what is
    sent. `on_reset` is given the address of a client whose connection is about to be reset on purpose. `lock` is held
    while a WebSocket asks a session that is shared with other threads.
    """

    def __init__(
        self,
        session: ReplaySession,
        pace: float = 0,
        upstream: str | None = None,
        on_outcome: Callable[[Outcome], None] | None = None,
        interpose: Interpose | None = None,
        on_reset: Callable[[tuple[str, int]], None] | None = None,
        lock: AbstractContextManager[Any] | None = None,
    ) -> None:
        self._session = session
        self._pace = pace
        self._upstream = upstream
        self._on_outcome = on_outcome
        self._interpose = interpose
        self._on_reset = on_reset
        self._lock = lock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        decided: Decided | None = scope.get(DECIDED)
        if decided is None:
            body = await _body(receive)
            if body is None:
                return  # the client went away before it had sent everything
            request = _request(scope["method"], _target(scope), self._upstream, _headers(scope["headers"]), body)
            transport: asyncio.Transport | None = scope.get(TRANSPORT)
            if transport is not None and _opens_socket(request):
                opened = self._session.open_socket(request)
                if isinstance(opened, SocketPlay):
                    await self._play_socket(scope, request, opened)
                    return
                decided = Decided(request, opened, playback(opened, self._pace))
            else:
                decided = self._decided(request)
        await self._send(Sending(scope, receive, send, self._resetting(scope)), decided)

    # -- what needs no waiting, for a door that calls without a task --------------------------------------------------

    @property
    def at_once(self) -> bool:
        """Whether answers may be sent as soon as they are known: nobody stands in between."""
        return self._interpose is None

    def decide(self, method: str, target: str, headers: Headers, body: bytes) -> Decided:
        """What becomes of a request that opens no WebSocket."""
        return self._decided(_request(method, target, self._upstream, headers, body))

    def tell(self, decided: Decided) -> None:
        """It was sent."""
        if self._on_outcome is not None:
            self._on_outcome(decided.outcome)

    def _decided(self, request: LiveRequest) -> Decided:
        outcome = self._session.answer(request)
        return Decided(request, outcome, playback(outcome, self._pace))

    # -- what does ----------------------------------------------------------------------------------------------------

    async def _send(self, sending: Sending, decided: Decided) -> None:
        outcome, shown = decided.outcome, decided.shown
        try:
            if self._interpose is not None:
                outcome = await sending.held(self._interpose(decided.request, outcome), shown)
                shown = shown if outcome is decided.outcome else playback(outcome, self._pace)
            await sending.play(shown)
        except ClientGone:
            pass
        except Exception:
            sending.close()
            raise
        finally:
            sending.over()
            self._tell(outcome)

    async def _play_socket(self, scope: Scope, request: LiveRequest, play: SocketPlay) -> None:
        def heard() -> None:
            for outcome in play.news():
                self._tell(outcome)

        hold = None
        if self._interpose is not None:
            interpose = self._interpose

            async def hold(message: str | bytes) -> None:
                body = message.encode() if isinstance(message, str) else message
                if play.outcome is not None:
                    await interpose(replace(request, body=body), play.outcome)

        resetting = self._resetting(scope)
        playing = PlayedSocket(scope[TRANSPORT], play, self._pace, heard, hold, self._lock, resetting)
        await playing.play(handshake_bytes(play, request.headers))
        heard()  # a server that spoke first, to a client that said nothing

    def _tell(self, outcome: Outcome) -> None:
        if self._on_outcome is not None:
            self._on_outcome(outcome)

    def _resetting(self, scope: Scope) -> Callable[[], None] | None:
        on_reset, client = self._on_reset, scope.get("client")
        return None if on_reset is None or client is None else lambda: on_reset(tuple(client))


def _target(scope: Scope) -> str:
    path: str = scope.get("raw_path", b"").decode("latin-1") or scope["path"]
    query: str = scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


def _request(method: str, target: str, upstream: str | None, headers: Headers, body: bytes) -> LiveRequest:
    # A target that names no host may be meant for any recorded one.
    return LiveRequest(method, route_url(target, upstream) or target, headers, body)


def _headers(raw: Iterable[tuple[bytes, bytes]]) -> Headers:
    return Headers([(name.decode("latin-1"), value.decode("latin-1")) for name, value in raw])


def _opens_socket(request: LiveRequest) -> bool:
    headers = request.headers
    return headers.get("upgrade", "").lower() == "websocket" and "sec-websocket-key" in headers


async def _body(receive: Receive) -> bytes | None:
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)
