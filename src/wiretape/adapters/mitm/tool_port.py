"""The port on loopback where a recorder hears of wrapped tools. Lean: every call of a tool waits for it twice."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Final

from wiretape.adapters.http1.whole_requests import Head, plain_head
from wiretape.adapters.mitm.tool_reports import ToolReports
from wiretape.adapters.replay_server.listening import listen
from wiretape.adapters.routing.hosts import is_loopback
from wiretape.adapters.routing.tool_route import JSON, Reply, is_tool_path, refused

_END: Final = b"\r\n\r\n"
_LONGEST_HEAD: Final = 64 * 1024


class ToolPort:
    """Listens from the start; answers from `serve` to `close`, on the loop of who serves."""

    def __init__(self, reports: ToolReports) -> None:
        self._reports = reports
        self._listening = listen()
        self.port: int = self._listening.getsockname()[1]
        self._server: asyncio.Server | None = None
        self._clients: set[asyncio.Transport] = set()

    async def serve(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self._reports, self._clients), sock=self._listening)

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        else:
            self._listening.close()
        for client in tuple(self._clients):
            client.close()


class _Connection(asyncio.Protocol):
    """One client's requests, one after the other."""

    def __init__(self, reports: ToolReports, clients: set[asyncio.Transport]) -> None:
        self._reports = reports
        self._clients = clients
        self._data = bytearray()
        self._head: Head | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._clients.add(transport)

    def connection_lost(self, error: Exception | None) -> None:
        if self._transport is not None:
            self._clients.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        self._data += data
        while (request := self._next()) is not None:
            self._send(self._reply(*request))

    def _next(self) -> tuple[Head, bytes] | None:
        """The next request that is there as a whole."""
        if self._head is None:
            end = self._data.find(_END)
            if end < 0:
                if len(self._data) > _LONGEST_HEAD:
                    self._give_up()
                return None
            self._head = plain_head(bytes(self._data[:end]))
            del self._data[: end + len(_END)]
            if self._head is None:
                self._give_up()
                return None
        head = self._head
        if len(self._data) < head.length:
            return None
        body = bytes(self._data[: head.length])
        del self._data[: head.length]
        self._head = None
        return head, body

    def _reply(self, head: Head, body: bytes) -> Reply:
        host = head.headers.get("host", "").rpartition(":")[0]
        if not is_loopback(host):  # a page in a browser may point a name of its own at this machine
            return refused(403, f"wiretape: this port is not {host}: the Host header is refused")
        if not is_tool_path(head.target):
            return refused(404, "wiretape: this port is for the tools of the program that is recorded")
        return self._reports.handle(head.method, head.target, head.headers.get("content-type", ""), body)

    def _send(self, reply: Reply) -> None:
        assert self._transport is not None
        data = reply.data
        kind = f"content-type: {JSON}\r\n" if data else ""
        first = f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}\r\n"
        self._transport.write(f"{first}{kind}content-length: {len(data)}\r\n\r\n".encode() + data)

    def _give_up(self) -> None:
        """It speaks no HTTP that is needed here."""
        self._send(refused(400, "wiretape: this request is not understood"))
        if self._transport is not None:
            self._transport.close()
