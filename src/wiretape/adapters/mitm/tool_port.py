"""The loopback port at which wrapped tools of the recorded program report their calls. Each call waits for it twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from wiretape.adapters.http1.messages import response
from wiretape.adapters.http1.server import HttpConnection, HttpRequest, listen, serve
from wiretape.adapters.routing.hosts import is_loopback
from wiretape.adapters.routing.tool_route import ANSWERED, DONE, JSON, RUN, ToolReply, asked_for, is_tool_path, refused
from wiretape.model.http import Ended
from wiretape.model.jsonvalue import Json
from wiretape.wire.mcp.tool_exchange import HEADERS, tool_url

FromTape: TypeAlias = "Callable[[str, Json], Json | None]"
"""Returns the MCP result of a tool call from a tape; None if the tool is to run."""

_DIGITS: Final = 18  # of an exchange number


class ToolReports:
    """Records each call of a wrapped tool as an exchange, from its request to its result, see `tool_route`.

    `safely` calls the recorder: it reports errors and returns None for them. `from_tape` is called first; `on_call` is
    called with the exchange number of each call that runs.
    """

    def __init__(self, recorder: Any, safely: Callable[..., Any]) -> None:
        self._recorder = recorder
        self._safely = safely
        self.from_tape: FromTape = lambda name, arguments: None
        self.on_call: Callable[[int], None] = lambda exchange: None
        self._running: set[int] = set()

    def handle(self, method: str, target: str, content_type: str, body: bytes) -> ToolReply:
        if method == "POST":
            return self._call(target, content_type, body)
        exchange = _exchange_in(target)
        if exchange not in self._running or method not in ("PUT", "DELETE"):
            return refused(404, f"wiretape: {method} {target}: no running tool call has this number")
        self._running.discard(exchange)
        if method == "PUT":
            self._safely(self._recorder.response, exchange, 200, HEADERS)
            self._safely(self._recorder.response_data, exchange, body)
        self._safely(self._recorder.end, exchange, Ended.COMPLETE if method == "PUT" else Ended.CLIENT_CLOSED)
        return ToolReply(DONE)

    def _call(self, target: str, content_type: str, body: bytes) -> ToolReply:
        asked = asked_for(target, content_type, body)
        if isinstance(asked, ToolReply):
            return asked
        name, arguments = asked
        known = self._safely(self.from_tape, name, arguments)
        if known is not None:
            return ToolReply(ANSWERED, known)
        exchange = self._safely(self._recorder.begin, "POST", tool_url(name), None, HEADERS)
        if exchange is None:
            return refused(503, "wiretape: the recording has ended")
        self._safely(self._recorder.request_data, exchange, body)
        self._safely(self._recorder.request_end, exchange)
        self._running.add(exchange)
        self.on_call(exchange)
        return ToolReply(RUN, {"exchange": exchange})


def _exchange_in(target: str) -> int:
    """Return the number of the exchange that a report names; 0 if it names none."""
    number = target.partition("?exchange=")[2]
    return int(number) if number.isdecimal() and len(number) <= _DIGITS else 0


class ToolPort:
    """Listens from the start; answers from `serve` to `close`, on the event loop of `serve`."""

    def __init__(self, reports: ToolReports) -> None:
        self._reports = reports
        self._listening = listen()
        self._stop = asyncio.Event()
        self.port: int = self._listening.getsockname()[1]

    async def serve(self) -> None:
        await serve(self._handle, self._listening, self._stop)

    def close(self) -> None:
        self._stop.set()

    def _handle(self, request: HttpRequest, connection: HttpConnection) -> None:
        reply = self._reply(request)
        headers = (("content-type", JSON),) if reply.body is not None else ()
        connection.respond(response(reply.status, headers, reply.data, request.keep_alive))

    def _reply(self, request: HttpRequest) -> ToolReply:
        host = request.headers.get("host", "").rpartition(":")[0]
        if not is_loopback(host):  # a web page may make its own host name resolve to this machine
            return refused(403, f"wiretape: this port is not {host}: the Host header is refused")
        if not is_tool_path(request.target):
            return refused(404, "wiretape: this port is for the tools of the program that is recorded")
        content_type = request.headers.get("content-type", "")
        return self._reports.handle(request.method, request.target, content_type, request.body)
