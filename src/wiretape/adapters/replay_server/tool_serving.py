"""The replay server's answers to the wrapped tools of the program that it replays, see `tool_route`."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from wiretape.adapters.replay_server.interposing import Interpose
from wiretape.adapters.replay_server.server import Decided, ReplayApp
from wiretape.adapters.routing.tool_route import ANSWERED, JSON, Reply, asked_for, is_tool_path, refused
from wiretape.matching.playback import Chunk, Playback
from wiretape.matching.session import ReplaySession
from wiretape.matching.values import LiveRequest, Miss, Outcome, Stray
from wiretape.wire.mcp.tool_exchange import answer_body

_MISSED = 400


class ToolApp(ReplayApp):
    """A replay server that answers wrapped tools, too. Nobody stands between a tool and its answer."""

    def __init__(
        self, session: ReplaySession, pace: float = 0, *, interpose: Interpose | None = None, **named: Any
    ) -> None:
        super().__init__(session, pace, interpose=_beside_tools(interpose), **named)

    def _decided(self, request: LiveRequest, path: str | None) -> Decided:
        return self._tool(request) if is_tool_path(request.url) else super()._decided(request, path)

    def _tool(self, request: LiveRequest) -> Decided:
        stray = Stray(0, f"{request.method} {request.url}")
        if request.method != "POST":
            return _as_decided(request, stray, refused(405, "wiretape replay: a tool's call is a POST"))
        asked = asked_for(request.url, request.headers.get("content-type", ""), request.body)
        if isinstance(asked, Reply):
            return _as_decided(request, stray, asked)
        with self._lock or nullcontext():
            played = self._session.play_tool(*asked)
        if isinstance(played, Miss):
            return _as_decided(request, played, refused(_MISSED, played.message))
        return _as_decided(request, played.shown, Reply(ANSWERED, answer_body(played.answer)))


def _beside_tools(interpose: Interpose | None) -> Interpose | None:
    if interpose is None:
        return None

    async def held(request: LiveRequest, outcome: Outcome) -> Outcome:
        return outcome if is_tool_path(request.url) else await interpose(request, outcome)

    return held


def _as_decided(request: LiveRequest, outcome: Outcome, reply: Reply) -> Decided:
    data = reply.data
    headers = [("content-type", JSON), ("content-length", str(len(data)))]
    return Decided(request, outcome, Playback(reply.status, headers, [Chunk(0, data)]))
