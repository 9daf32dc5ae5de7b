"""An HTTP/1.1 server on httptools: hands each request to a handler, and sends responses in their order.

It does not depend on the content. A handler sends its response immediately, or returns a coroutine that writes it.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import struct
import sys
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

import httptools

from wiretape.adapters.http1.messages import response
from wiretape.errors import UsageError
from wiretape.model.http import Headers

# Connections are closed after an idle time of once to twice this. A server that closes a connection just when the next
# request arrives loses that request, and many clients do not retry.
IDLE_S: Final = 600
_SHUTDOWN_S: Final = 1.0  # for responses that are being sent when the server stops
_BACKLOG: Final = 2048
_READ_AHEAD: Final = 8  # requests that wait for a response; more are left unread
_FLUSH_BYTES: Final = 16 * 1024  # of responses that are buffered until the end of a turn of the event loop
_MAX_HEAD: Final = 64 * 1024  # bytes
_NOT_A_PROXY: Final = "wiretape is not a proxy on this port: HTTP_PROXY and HTTPS_PROXY name its proxy port"
_TLS: Final = b"\x16\x03"  # how a TLS ClientHello begins
_SPECIAL: Final = frozenset({"connection", "expect", "upgrade"})
_UPGRADE_HEADERS: Final = frozenset({b"connection", b"upgrade", b"http2-settings"})
_NO_LINGER: Final = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)  # closing discards and resets


class HttpRequest(NamedTuple):
    """A complete request. `target`: as in its first line, without a fragment; a path, a URL or `*`."""

    method: str
    target: str
    headers: Headers
    body: bytes
    version: str
    keep_alive: bool
    opens_websocket: bool


Handler: TypeAlias = "Callable[[HttpRequest, HttpConnection], Coroutine[Any, Any, None] | None]"


class Connections(set["HttpConnection"]):
    """The open connections of a server. Their buffered responses are written in one callback of the event loop."""

    def __init__(self) -> None:
        super().__init__()
        self._to_flush: deque[HttpConnection] = deque()

    def flush_soon(self, connection: HttpConnection) -> None:
        """Flush a connection at the end of this turn of the event loop."""
        if not self._to_flush:
            asyncio.get_running_loop().call_soon(self._flush)
        self._to_flush.append(connection)

    def _flush(self) -> None:
        try:
            while self._to_flush:
                self._to_flush.popleft().flush()
        finally:
            if self._to_flush:  # a callback of a response has failed
                asyncio.get_running_loop().call_soon(self._flush)


class HttpConnection(asyncio.Protocol):
    """One client's connection. Requests are answered one at a time, in their order.

    `respond` buffers a response until the end of this turn of the event loop: each write wakes a client, which takes as
    long as half a response, and other connections are answered first.
    """

    def __init__(self, handler: Handler, connections: Connections) -> None:
        self.transport: asyncio.Transport
        self.half_closed = asyncio.Event()  # the client sends nothing more; it may still read
        self.gone = asyncio.Event()
        self.early = bytearray()  # bytes that arrived behind a WebSocket's handshake
        self._handler = handler
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._requests: deque[HttpRequest] = deque()  # without a response
        self._answering: asyncio.Task[None] | None = None
        self._responses: list[bytes] = []
        self._on_sent: list[Callable[[], None]] = []
        self._buffered = 0
        self._writable = asyncio.Event()
        self._writable.set()
        self._no_more_requests = False
        self._reading_paused = False
        self._refusal = b""  # the response to bytes that are not a request
        # the message that is being read
        self._in_message = self._in_head = False
        self._owes_continue = False
        self._declined = False  # it offers a protocol other than WebSocket
        self._opens_websocket = False
        self._url = b""
        self._head_size = 0
        self._pairs: list[tuple[bytes, bytes]] = []
        self._head: _Head | None = None
        self._body: list[bytes] = []

    # -- for handlers ------------------------------------------------------------------------------------------------

    @property
    def writable(self) -> bool:
        """Whether the client reads its responses."""
        return self._writable.is_set()

    def respond(self, data: bytes, on_sent: Callable[[], None] | None = None) -> None:
        """Send a whole response; `on_sent` is called after it was written."""
        if not self._responses:
            self._connections.flush_soon(self)
        self._responses.append(data)
        if on_sent is not None:
            self._on_sent.append(on_sent)
        self._buffered += len(data)
        if self._buffered > _FLUSH_BYTES:
            self.flush()  # while the client does not read, its next requests wait

    async def write(self, data: bytes) -> None:
        """Send a part of a response; wait while the client does not read."""
        self.transport.write(data)
        if not self._writable.is_set():
            await self._writable.wait()

    def close(self) -> None:
        """End the connection; data written before is still delivered."""
        self._no_more_requests = True
        self._requests.clear()
        self.flush()
        self.transport.close()

    # -- the transport's callbacks -----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._connections.add(self)
        self._is_idle = False
        self._idle_timer = self._loop.call_later(IDLE_S, self._close_if_idle)

    def data_received(self, data: bytes) -> None:
        self._is_idle = False
        if self._opens_websocket:
            self.early += data
        elif not self._no_more_requests:
            self._feed(data)
            if self._in_head:
                self._head_size += len(data)
                if self._head_size > _MAX_HEAD:
                    self._refuse(431, f"wiretape reads request headers of up to {_MAX_HEAD // 1024} KiB")
            self._answer_requests()

    def eof_received(self) -> bool:
        """Return True if the connection stays open: the client may still read responses to its requests."""
        self.half_closed.set()
        self._no_more_requests = True
        self.flush()
        return not self._opens_websocket and bool(self._answering or self._requests)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()
        self._answer_requests()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self)
        self._idle_timer.cancel()
        self._requests.clear()
        self.half_closed.set()
        self.gone.set()
        self._writable.set()

    # -- the end -----------------------------------------------------------------------------------------------------

    def finish(self) -> asyncio.Task[None] | None:
        """Close after the response that is being sent; return its task."""
        self._no_more_requests = True
        self._requests.clear()
        if self._answering is None or self.half_closed.is_set():  # a half-closed client has most likely gone
            self.close()
        return self._answering

    def abort(self) -> None:
        if self._answering is not None:
            self._answering.cancel()
        self.transport.abort()

    def _close_if_idle(self) -> None:
        """Close a connection on which nothing has happened since the last call."""
        if self._is_idle and not (self._in_message or self._answering or self._requests):
            self.close()
        else:
            self._is_idle = True
            self._idle_timer = self._loop.call_later(IDLE_S, self._close_if_idle)

    # -- responses ---------------------------------------------------------------------------------------------------

    def _answer_requests(self) -> None:
        while self._requests and self._answering is None and self._writable.is_set():
            request = self._requests.popleft()
            answering = self._handler(request, self)
            if answering is not None:
                self.flush()
                self._answering = self._loop.create_task(self._answer(answering, request.keep_alive))
            elif not request.keep_alive:
                self.close()
                return
        if (self._no_more_requests or self._owes_continue) and self._answering is None and not self._requests:
            self._all_answered()
        if (len(self._requests) >= _READ_AHEAD) != self._reading_paused:
            self._reading_paused = not self._reading_paused
            if self._reading_paused:
                self.transport.pause_reading()
            else:
                self.transport.resume_reading()  # during a response, too: only reads show that the client has gone

    def _all_answered(self) -> None:
        if self._refusal:
            self._responses.append(self._refusal)
            self.close()
        elif self.half_closed.is_set():
            self.close()
        elif self._owes_continue and not self.transport.is_closing():
            self._owes_continue = False
            self.flush()
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    async def _answer(self, answering: Coroutine[Any, Any, None], keep_alive: bool) -> None:
        try:
            await answering
        except Exception as error:
            keep_alive = False
            context = {"message": "a response of wiretape failed", "exception": error, "transport": self.transport}
            self._loop.call_exception_handler(context)
        finally:
            self._answering = None
            self._is_idle = False
            done = self._no_more_requests and not (self._requests or self._refusal)
            if done or not keep_alive or self.transport.is_closing():
                self.close()
            else:
                self._answer_requests()

    def flush(self) -> None:
        if not self._responses:
            return
        if not self.transport.is_closing():
            self.transport.write(b"".join(self._responses))
        on_sent, self._on_sent, self._responses, self._buffered = self._on_sent, [], [], 0
        for call in on_sent:
            call()

    # -- requests: what the parser is given, and its callbacks -------------------------------------------------------

    def _feed(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as stopped:
            rest = data[stopped.args[0] :]
            if self._opens_websocket:
                self.early += rest
            elif self._declined:
                self._declined = False
                head = self._head_without_upgrade()
                self._url, self._pairs = b"", []
                self._feed(head + rest)  # with the body, which the parser takes for an upgrade
        except httptools.HttpParserError as error:
            if not self._no_more_requests:  # else it is data behind the last request
                self._refuse(400, _explain(data, error))

    def _refuse(self, status: int, why: str) -> None:
        self._no_more_requests = True
        self._refusal = response(status, (("content-type", "text/plain; charset=utf-8"),), why.encode(), False)

    def _head_without_upgrade(self) -> bytes:
        kept = [b"%b: %b" % pair for pair in self._pairs if pair[0].lower() not in _UPGRADE_HEADERS]
        return b"\r\n".join([b"%b %b HTTP/1.1" % (self._parser.get_method(), self._url), *kept, b"", b""])

    def on_url(self, url: bytes) -> None:
        self._in_message = self._in_head = True
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # else it is a trailer
            self._pairs.append((name, value))

    def on_headers_complete(self) -> None:
        self._in_head, self._head_size = False, 0
        self._head = _read_head(self._parser.get_method(), self._url, tuple(self._pairs))
        if self._head.is_special:
            self._read_special(self._head.headers)

    def _read_special(self, headers: Headers) -> None:
        if "upgrade" in headers and self._parser.should_upgrade():
            self._opens_websocket = headers["upgrade"].lower() == "websocket" and "sec-websocket-key" in headers
            self._declined = not self._opens_websocket
        elif "expect" in headers:
            self._owes_continue = self._parser.get_http_version() == "1.1"

    def on_body(self, data: bytes) -> None:
        self._body.append(data)

    def on_message_complete(self) -> None:
        self._in_message = self._owes_continue = False
        head, body = self._head, self._body
        if self._declined:
            return  # its head is read again, without the offer
        self._url, self._pairs, self._body = b"", [], []
        if head is None or self._no_more_requests:
            return
        keep_alive = self._parser.should_keep_alive()
        version = "1.1" if keep_alive and not head.is_special else self._parser.get_http_version()
        keep_alive = keep_alive and version != "1.0" and not self._opens_websocket
        self._no_more_requests = not keep_alive
        self._requests.append(
            HttpRequest(
                head.method,
                head.target,
                head.headers,
                b"".join(body),
                version,
                keep_alive,
                self._opens_websocket,
            )
        )


class _Head(NamedTuple):
    """The head of a request. `is_special`: some of its headers concern the connection."""

    method: str
    target: str
    headers: Headers
    is_special: bool


@lru_cache(256)  # a client's heads are often equal to the byte
def _read_head(method: bytes, url: bytes, pairs: tuple[tuple[bytes, bytes], ...]) -> _Head:
    """Decode a head. An exception becomes the refusal of the request."""
    if method == b"CONNECT":
        raise ValueError(_NOT_A_PROXY)
    if not url.startswith(b"/"):
        httptools.parse_url(url)
    headers = Headers([(name.decode("latin-1"), value.decode("latin-1").rstrip("\t ")) for name, value in pairs])
    target = url.decode("latin-1").partition("#")[0]
    return _Head(method.decode(), target, headers, not _SPECIAL.isdisjoint(headers))


def _explain(data: bytes, error: Exception) -> str:
    """Explain to a client why its bytes are not a request."""
    if data.startswith(_TLS):
        return "wiretape speaks plain HTTP on this port: use http:// instead of https:// in the base URL"
    if data.startswith(b"CONNECT "):
        return _NOT_A_PROXY
    why = error.__context__ or error  # the parser wraps exceptions of its callbacks
    return f"wiretape could not read this as an HTTP/1.1 request: {str(why) or type(why).__name__}"


def listen(port: int = 0) -> socket.socket:
    """Open a listening socket on 127.0.0.1; port 0 takes any free one. UsageError: the port cannot be had."""
    # asyncio sets TCP_NODELAY only on sockets whose protocol is named: else every response waits 40 ms.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(("127.0.0.1", port))
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise port_taken(port) from None
        raise UsageError(
            f"cannot listen on port {port}: {error.strerror or error}\n  choose another with --port, or omit it"
        ) from None
    listening.listen(_BACKLOG)
    return listening


async def serve(handler: Handler, listening: socket.socket, stop: asyncio.Event) -> None:
    """Serve until `stop` is set. Responses that are being sent then get a second; all connections are closed."""
    connections = Connections()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: HttpConnection(handler, connections), sock=listening, backlog=_BACKLOG)
    try:
        await stop.wait()
    finally:
        server.close()
        answering = [task for connection in tuple(connections) if (task := connection.finish()) is not None]
        deadline = loop.time() + _SHUTDOWN_S
        await asyncio.sleep(0)  # most connections are closed in the loop's next turn
        while connections and loop.time() < deadline:
            await asyncio.sleep(0.005)
        for connection in tuple(connections):
            connection.abort()
        await asyncio.gather(*answering, return_exceptions=True)


def port_taken(port: int) -> UsageError:
    return UsageError(f"port {port} on 127.0.0.1 is in use: choose another with --port, or omit it for any free one")


def close_by_reset(transport: asyncio.BaseTransport) -> None:
    """Make the end of a connection a TCP reset."""
    connection = transport.get_extra_info("socket")
    with suppress(OSError):  # it is closed already
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)


def reset(transport: asyncio.BaseTransport) -> None:
    """End a connection by a TCP reset."""
    close_by_reset(transport)
    if isinstance(transport, asyncio.WriteTransport):
        transport.abort()
