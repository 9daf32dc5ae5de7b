"""The replay server: answers HTTP requests, WebSockets and wrapped tools from a session. It does no matching itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

from wiretape.adapters.http1.send_playback import ClientGone, PlaybackSender, whole_response
from wiretape.adapters.http1.server import HttpConnection, HttpRequest
from wiretape.adapters.http1.websocket_replay import handshake_response
from wiretape.adapters.replay_server.websockets import WebSocketConnection
from wiretape.adapters.routing.admission import Admission
from wiretape.adapters.routing.hosts import is_loopback
from wiretape.adapters.routing.route_links import Route
from wiretape.adapters.routing.routes import route_url
from wiretape.adapters.routing.tool_route import ANSWERED, JSON, ToolReply, asked_for, is_tool_path
from wiretape.adapters.routing.tool_route import refused as tool_refused
from wiretape.matching.playback import Chunk, Playback, playback, refused
from wiretape.matching.session import ReplaySession
from wiretape.matching.sockets.playing import SocketPlay
from wiretape.matching.values import Answer, Injected, LiveRequest, Miss, Outcome, Stray
from wiretape.model.header_links import LINK_HEADERS
from wiretape.model.http import Exchange
from wiretape.wire.mcp.tool_exchange import answer_body

_URL: Final = re.compile(r"https?://([^/?#]*)", re.IGNORECASE)
_RECORDED: Final = (Answer, Injected)
_TOOL_MISSED: Final = 400


class Interpose(Protocol):
    """A callback between the session's outcome and the response. The server awaits it before it sends anything.

    It returns the outcome to send: its argument, or another one. It may take minutes, during which other requests are
    answered. While it holds an event stream, the client gets the recorded status and headers, then comments,
    so that it does not time out. From then on only the events can be changed: if the new outcome has another status or
    content type, the connection is closed. When the client disconnects, the call is cancelled.

    It is also called for each message of a WebSocket's client, with the message as the request's body and what the
    connection plays as the outcome. There it delays what follows, and its result is ignored. It runs on the server's
    event loop and must not block. If it raises, the connection is closed without a response.
    """

    def __call__(self, request: LiveRequest, outcome: Outcome) -> Coroutine[Any, Any, Outcome]: ...


class PlannedAnswer(NamedTuple):
    """A request, its outcome, and the playback of that. `path`: of a base-URL route; None for a proxied request."""

    request: LiveRequest
    outcome: Outcome
    shown: Playback
    path: str | None = None


class ReplayHandler:
    """Answers the requests of `http1.server` from a session.

    `on_outcome` is called with the outcome of each request after its response was sent; for a WebSocket, with that of
    each call when the client's message has arrived, and with a miss. `on_reset` is called with the address of a client
    whose connection is about to be reset on purpose. `lock` is held while a session is used that other threads share.
    `admission` decides which requests are served.

    A request whose target is a path arrived by a base-URL route. One with a whole URL arrived through a proxy port: it
    is not checked, and the links in its response are not changed.
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

    def __call__(self, request: HttpRequest, connection: HttpConnection) -> Coroutine[Any, Any, None] | None:
        live, path = _live(request, connection)
        if request.opens_websocket:
            opened = self._refuse(live, path) or self._session.open_socket(live)
            if isinstance(opened, SocketPlay):
                return self._play_socket(connection, live, opened)
            answer = opened if isinstance(opened, PlannedAnswer) else self._plan(live, opened, path)
        else:
            answer = self.plan(live, path)
        if self._interpose is None or is_tool_path(live.url):
            response = whole_response(answer.shown, request)
            if response is not None:
                connection.respond(response, self._on_outcome and partial(self._on_outcome, answer.outcome))
                return None
        return self._send(PlaybackSender(connection, request, self._resetting(connection)), answer, connection)

    def plan(self, request: LiveRequest, path: str | None) -> PlannedAnswer:
        """Look up the answer to a request that does not open a WebSocket."""
        refusal = self._refuse(request, path)
        if refusal is not None:
            return refusal
        if is_tool_path(request.url):
            return self._plan_tool(request)
        return self._plan(request, self._session.answer(request), path)

    def _plan(self, request: LiveRequest, outcome: Outcome, path: str | None) -> PlannedAnswer:
        shown = playback(outcome, self._pace)
        if path is not None and isinstance(outcome, _RECORDED):
            shown = _keep_on_route(shown, request, path, outcome.exchange)
        return PlannedAnswer(request, outcome, shown, path)

    def _refuse(self, request: LiveRequest, path: str | None) -> PlannedAnswer | None:
        refusal = self._admission.refusal(request.headers) if path is not None else None
        if refusal is None:
            return None
        stray = self._session.refused(f"{request.method} {request.url}", refusal)
        return PlannedAnswer(request, stray, refused(403, f"wiretape replay refuses this request: {refusal}"), path)

    def _plan_tool(self, request: LiveRequest) -> PlannedAnswer:
        """Answer a call of a wrapped tool, see `tool_route`."""
        stray = Stray(0, f"{request.method} {request.url}")
        if request.method != "POST":
            return _tool_answer(request, stray, tool_refused(405, "wiretape replay: a tool's call is a POST"))
        asked = asked_for(request.url, request.headers.get("content-type", ""), request.body)
        if isinstance(asked, ToolReply):
            return _tool_answer(request, stray, asked)
        with self._lock or nullcontext():
            played = self._session.play_tool(*asked)
        if isinstance(played, Miss):
            return _tool_answer(request, played, tool_refused(_TOOL_MISSED, played.message))
        return _tool_answer(request, played.shown, ToolReply(ANSWERED, answer_body(played.answer)))

    async def _send(self, sender: PlaybackSender, answer: PlannedAnswer, connection: HttpConnection) -> None:
        outcome, shown = answer.outcome, answer.shown
        try:
            if self._interpose is not None and not is_tool_path(answer.request.url):
                outcome = await sender.held(self._interpose(answer.request, outcome), shown)
                if outcome is not answer.outcome:
                    shown = self._plan(answer.request, outcome, answer.path).shown
            await sender.play(shown)
        except ClientGone:
            connection.close()
        finally:
            self._report(outcome)

    async def _play_socket(self, connection: HttpConnection, request: LiveRequest, play: SocketPlay) -> None:
        def report() -> None:
            for outcome in play.new_outcomes():
                self._report(outcome)

        hold = None
        if self._interpose is not None:
            interpose = self._interpose

            async def hold(message: str | bytes) -> None:
                body = message.encode() if isinstance(message, str) else message
                if play.outcome is not None:
                    await interpose(replace(request, body=body), play.outcome)

        resetting = self._resetting(connection)
        playing = WebSocketConnection(connection.transport, play, self._pace, report, hold, self._lock, resetting)
        await playing.run(handshake_response(play, request.headers), bytes(connection.early))
        report()  # of a server that spoke first, to a client that sent nothing

    def _report(self, outcome: Outcome) -> None:
        if self._on_outcome is not None:
            self._on_outcome(outcome)

    def _resetting(self, connection: HttpConnection) -> Callable[[], None] | None:
        client = connection.transport.get_extra_info("peername")
        return None if self._on_reset is None or client is None else partial(self._on_reset, tuple(client[:2]))


def _live(request: HttpRequest, connection: HttpConnection) -> tuple[LiveRequest, str | None]:
    """Return the request for the session, and its path if it arrived by a base-URL route."""
    target = request.target
    named = None if target.startswith("/") else _URL.match(target)
    if named is not None:
        if not _is_own(named[1], connection.transport.get_extra_info("sockname")):
            return LiveRequest(request.method, target, request.headers, request.body), None
        target = target[named.end() :]
        target = target if target.startswith("/") else f"/{target}"
    # A path that names no host may be meant for any recorded one.
    return LiveRequest(request.method, route_url(target) or target, request.headers, request.body), target


def _is_own(authority: str, address: tuple[Any, ...] | None) -> bool:
    host, _, port = authority.rpartition(":")
    return address is not None and port == str(address[1]) and is_loopback(host)


def _keep_on_route(shown: Playback, request: LiveRequest, path: str, recorded: Exchange) -> Playback:
    """Let the links of an answer point here: a client that follows one must not leave the tape."""
    if recorded.response is None or LINK_HEADERS.isdisjoint(recorded.response.headers):
        return shown
    route = Route(f"http://{request.headers.get('host', 'localhost')}", path, recorded.request.url)
    return replace(shown, headers=route.close(shown.headers))


def _tool_answer(request: LiveRequest, outcome: Outcome, reply: ToolReply) -> PlannedAnswer:
    data = reply.data
    headers = [("content-type", JSON), ("content-length", str(len(data)))]
    return PlannedAnswer(request, outcome, Playback(reply.status, headers, [Chunk(0, data)]))
