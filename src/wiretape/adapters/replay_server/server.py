"""The replay server: a lean ASGI app on a loopback port. Holds no matching of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Final

from wiretape.adapters.http1.sending import TRANSPORT, ClientGone, Receive, Scope, Send, Sending
from wiretape.adapters.http1.websocket_talk import handshake_bytes
from wiretape.adapters.replay_server.interposing import Interpose
from wiretape.adapters.replay_server.websockets import PlayedSocket
from wiretape.adapters.routing.admission import Admission
from wiretape.adapters.routing.hosts import is_loopback
from wiretape.adapters.routing.route_links import Route
from wiretape.adapters.routing.routes import route_url
from wiretape.matching.playback import Playback, playback, refused
from wiretape.matching.session import ReplaySession
from wiretape.matching.sockets.playing import SocketPlay
from wiretape.matching.values import Answer, Injected, LiveRequest, Outcome
from wiretape.model.header_links import LINK_HEADERS
from wiretape.model.http import Exchange, Headers

# In a request's scope, beside what ASGI says
DECIDED = "wiretape.decided"  # what becomes of it, where that is known already
TARGET = "wiretape.target"  # of the first line, where it is more than a path
EARLY = "wiretape.early"  # a bytearray: what came for a WebSocket before it was played

_URL: Final = re.compile(r"https?://([^/?#]*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Decided:
    """A request, what the session made of it, and how that is sent."""

    request: LiveRequest
    outcome: Outcome
    shown: Playback
    path: str | None = None  # what a base-URL route was asked for; None: it came through a proxy port


class ReplayApp:
    """Answers HTTP requests and WebSockets from a session.

    `on_outcome` is told what became of each request after its answer was sent; of a WebSocket it is told of each call
    when the client's message has come, and of a miss. `interpose` stands between the session's answers and what is
    sent. `on_reset` is given the address of a client whose connection is about to be reset on purpose. `lock` is held
    while a WebSocket asks a session that is shared with other threads. `admission` decides which requests are served.

    A request whose first line has a path came by a base-URL route. One that has a whole URL there came through a proxy
    port: it is not checked, and its answer is sent with the links that were recorded.
    """

    def __init__(
        self,
        session: ReplaySession,
        pace: float = 0,
        on_outcome: Callable[[Outcome], None] | None = None,
        interpose: Interpose | None = None,
        on_reset: Callable[[tuple[str, int]], None] | None = None,
        lock: AbstractContextManager[Any] | None = None,
        admission: Admission | None = None,
    ) -> None:
        self._session = session
        self._pace = pace
        self._on_outcome = on_outcome
        self._interpose = interpose
        self._on_reset = on_reset
        self._lock = lock
        self._admission = admission or Admission()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        decided: Decided | None = scope.get(DECIDED)
        if decided is None:
            body = await _body(receive)
            if body is None:
                return  # the client went away before it had sent everything
            target, headers = _target(scope), headers_of(scope["headers"])
            if scope.get(TRANSPORT) is not None and opens_socket(headers):
                request, path = _request(scope["method"], target, headers, body)
                opened = self._refused(request, path) or self._session.open_socket(request)
                if isinstance(opened, SocketPlay):
                    await self._play_socket(scope, request, opened)
                    return
                decided = opened if isinstance(opened, Decided) else self._shown(request, opened, path)
            else:
                decided = self.decide(scope["method"], target, headers, body)
        await self._send(Sending(scope, receive, send, self._resetting(scope)), decided)

    # -- what needs no waiting, for a door that calls without a task --------------------------------------------------

    @property
    def at_once(self) -> bool:
        """Whether answers may be sent as soon as they are known: nobody stands in between."""
        return self._interpose is None

    def decide(self, method: str, target: str, headers: Headers, body: bytes) -> Decided:
        """What becomes of a request that opens no WebSocket."""
        request, path = _request(method, target, headers, body)
        return self._refused(request, path) or self._decided(request, path)

    def tell(self, decided: Decided) -> None:
        """It was sent."""
        if self._on_outcome is not None:
            self._on_outcome(decided.outcome)

    def _decided(self, request: LiveRequest, path: str | None) -> Decided:
        return self._shown(request, self._session.answer(request), path)

    def _shown(self, request: LiveRequest, outcome: Outcome, path: str | None) -> Decided:
        shown = playback(outcome, self._pace)
        if path is not None and isinstance(outcome, Answer | Injected):
            shown = _on_route(shown, request, path, outcome.exchange)
        return Decided(request, outcome, shown, path)

    def _refused(self, request: LiveRequest, path: str | None) -> Decided | None:
        """A request that is not served, or None."""
        refusal = self._admission.refusal(request.headers) if path is not None else None
        if refusal is None:
            return None
        stray = self._session.refused(f"{request.method} {request.url}", refusal)
        return Decided(request, stray, refused(403, f"wiretape replay refuses this request: {refusal}"), path)

    # -- what does ----------------------------------------------------------------------------------------------------

    async def _send(self, sending: Sending, decided: Decided) -> None:
        outcome, shown = decided.outcome, decided.shown
        try:
            if self._interpose is not None:
                outcome = await sending.held(self._interpose(decided.request, outcome), shown)
                if outcome is not decided.outcome:
                    shown = self._shown(decided.request, outcome, decided.path).shown
            await sending.play(shown)
        except ClientGone:
            sending.close()
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
        await playing.play(handshake_bytes(play, request.headers), scope.get(EARLY, b""))
        heard()  # a server that spoke first, to a client that said nothing

    def _tell(self, outcome: Outcome) -> None:
        if self._on_outcome is not None:
            self._on_outcome(outcome)

    def _resetting(self, scope: Scope) -> Callable[[], None] | None:
        on_reset, client = self._on_reset, scope.get("client")
        return None if on_reset is None or client is None else lambda: on_reset(tuple(client))


def _target(scope: Scope) -> str:
    """What the first line asks for: a path, or a URL that is no address of this server."""
    path: str = scope.get("raw_path", b"").decode("latin-1") or scope["path"]
    query: str = scope["query_string"].decode("latin-1")
    named: str = scope.get(TARGET, "")
    url = _URL.match(named)
    if url is not None and not _is_own(url[1], scope.get("server")):
        return named
    return f"{path}?{query}" if query else path


def _is_own(authority: str, address: tuple[str, int | None] | None) -> bool:
    host, _, port = authority.rpartition(":")
    return address is not None and port == str(address[1]) and is_loopback(host)


def _request(method: str, target: str, headers: Headers, body: bytes) -> tuple[LiveRequest, str | None]:
    """A request, and the path that a base-URL route was asked for; None if it came through a proxy port."""
    if _URL.match(target):
        return LiveRequest(method, target, headers, body), None
    # A path that names no host may be meant for any recorded one.
    return LiveRequest(method, route_url(target) or target, headers, body), target


def _on_route(shown: Playback, request: LiveRequest, path: str, recorded: Exchange) -> Playback:
    """An answer whose links lead back here: a client that follows one must not leave the tape."""
    if recorded.response is None or LINK_HEADERS.isdisjoint(recorded.response.headers):
        return shown
    route = Route(f"http://{request.headers.get('host', 'localhost')}", path, recorded.request.url)
    return replace(shown, headers=route.close(shown.headers))


def headers_of(raw: Iterable[tuple[bytes, bytes]]) -> Headers:
    return Headers([(name.decode("latin-1"), value.decode("latin-1")) for name, value in raw])


def opens_socket(headers: Headers) -> bool:
    """Whether a request with these opens a WebSocket."""
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
