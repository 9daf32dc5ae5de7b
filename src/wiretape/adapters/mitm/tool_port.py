"""The loopback port at which wrapped tools of the recorded program report their calls. Each call waits for it twice."""

from __future__ import annotations

import asyncio

from wiretape.adapters.http1.messages import response
from wiretape.adapters.http1.server import HttpConnection, HttpRequest, listen, serve
from wiretape.adapters.mitm.tool_reports import ToolReports
from wiretape.adapters.routing.hosts import is_loopback
from wiretape.adapters.routing.tool_route import JSON, Reply, is_tool_path, refused


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

    def _reply(self, request: HttpRequest) -> Reply:
        host = request.headers.get("host", "").rpartition(":")[0]
        if not is_loopback(host):  # a web page may make its own host name resolve to this machine
            return refused(403, f"wiretape: this port is not {host}: the Host header is refused")
        if not is_tool_path(request.target):
            return refused(404, "wiretape: this port is for the tools of the program that is recorded")
        content_type = request.headers.get("content-type", "")
        return self._reports.handle(request.method, request.target, content_type, request.body)
