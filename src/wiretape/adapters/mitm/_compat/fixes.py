"""Correct five faults of mitmproxy that change what one side sends to the other.

- HTTP/1 interim responses (103 Early Hints) are taken for the final response. They are dropped before mitmproxy reads.
- A chunked HTTP/1 body with trailers ends in an error. The trailers are dropped.
- A WebSocket that breaks off gets a made-up close frame. That frame is not sent.
- A client gets at most five connections to one upstream, so that a sixth HTTP/2 stream waits. The limit is raised.
- IPv6 addresses lose their brackets in `Host` and in URLs. They keep them.

Applied to wiretape's own proxies. Seen with mitmproxy 12.0.0 and 12.3.1; a part that mitmproxy lacks is not patched.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import h11
from mitmproxy.net.http import url
from mitmproxy.proxy import commands, events, server
from mitmproxy.proxy.layers import websocket
from mitmproxy.proxy.layers.http import _http1
from wsproto.events import CloseConnection
from wsproto.frame_protocol import CloseReason

from wiretape.adapters.mitm._compat import goaway
from wiretape.model.http import bracketed, bracketed_authority, bracketed_url

_FIXED = "wiretape_fixed"
_CONNECTIONS = 10_000


def install() -> None:
    """Patch mitmproxy, once in a process."""
    client = getattr(_http1, "Http1Client", None)
    if client is None or getattr(_http1, _FIXED, False):
        return
    setattr(_http1, _FIXED, True)
    if hasattr(client, "read_headers"):
        client.read_headers = _without_interim(client.read_headers)
    reader = getattr(_http1, "ChunkedReader", None)
    if reader is not None:
        _http1.ChunkedReader = _without_trailers(reader)
    socket = getattr(websocket, "WebsocketConnection", None)
    if socket is not None and hasattr(socket, "send2"):
        socket.send2 = _without_invented_close(socket.send2)
    bracket_ipv6()
    goaway.install()
    handler = getattr(server, "ConnectionHandler", None)
    if handler is not None and "max_conns" in getattr(handler, "__annotations__", {}):
        handler.__init__ = _with_many_connections(handler.__init__)


def idle_timeout(seconds: int) -> dict[str, int]:
    """Return the options that close connections after `seconds` of silence.

    mitmproxy 12.0 has a constant of ten minutes instead of an option: it is replaced, and no option is returned.
    """
    if hasattr(server, "TCP_TIMEOUT"):
        server.TCP_TIMEOUT = seconds
        return {}
    return {"tcp_timeout": seconds}


def bracket_ipv6() -> None:
    """Write IPv6 addresses with brackets, and read those that lack them. Patch mitmproxy once in a process."""
    if getattr(url, _FIXED, False):
        return
    setattr(url, _FIXED, True)
    written, read, read_authority = url.hostport, url.parse, url.parse_authority

    def hostport(scheme: Any, host: Any, port: int) -> Any:
        if isinstance(host, bytes):
            return written(scheme, bracketed(host.decode("latin-1")).encode("latin-1"), port)
        return written(scheme, bracketed(host), port)

    url.hostport = hostport
    url.parse = lambda text: read(_spelled(text, bracketed_url))
    url.parse_authority = lambda text, check: read_authority(_spelled(text, bracketed_authority), check)


def _spelled(text: Any, spell: Callable[[str], str]) -> Any:
    return spell(text.decode("latin-1")).encode("latin-1") if isinstance(text, bytes) else spell(text)


def _without_interim(read_headers: Any) -> Any:
    def read(self: Any, event: Any) -> Iterator[Any]:
        if isinstance(event, events.DataReceived):
            while _starts_interim(bytes(self.buf)) and self.buf.maybe_extract_lines() is not None:
                pass
        yield from read_headers(self, event)

    return read


def _starts_interim(data: bytes) -> bool:
    """Return whether data begins with the head of an interim response; 101 is final: another protocol follows."""
    line, end, _ = data.partition(b"\r\n")
    words = line.split(b" ", 2)
    if not end or len(words) < 2 or not words[0].startswith(b"HTTP/1."):
        return False
    return len(words[1]) == 3 and words[1].startswith(b"1") and words[1] != b"101"


def _without_trailers(reader: Any) -> Any:
    class Reader(reader):  # type: ignore[misc]
        def __call__(self, buffer: Any) -> Any:
            event = super().__call__(buffer)
            if isinstance(event, h11.EndOfMessage) and event.headers:
                return h11.EndOfMessage()
            return event

    return Reader


def _with_many_connections(init: Any) -> Any:
    def made(self: Any, *values: Any, **named: Any) -> None:
        init(self, *values, **named)
        self.max_conns = defaultdict(lambda: asyncio.Semaphore(_CONNECTIONS))

    return made


def _without_invented_close(send: Any) -> Any:
    """Do not send close code 1006: it means a missing close frame. The connection is closed as before."""

    def sent(self: Any, event: Any) -> Any:
        if isinstance(event, CloseConnection) and event.code == CloseReason.ABNORMAL_CLOSURE:
            return commands.SendData(self.conn, b"")
        return send(self, event)

    return sent
