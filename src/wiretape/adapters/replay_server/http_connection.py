"""One connection of the replay server, as uvicorn speaks HTTP/1.1, and what uvicorn leaves out of it.

Requests of any method and for any host; clients that say no more once they have asked; offers to switch to another
protocol, which are declined; WebSockets whose first frames come with their handshake. Imported when a server starts:
uvicorn takes a while to import.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, Final

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from wiretape.adapters.http1.sending import SAID_ALL, TRANSPORT
from wiretape.adapters.replay_server.first_line import FirstLine
from wiretape.adapters.replay_server.server import EARLY, TARGET, headers_of, opens_socket

_OF_AN_UPGRADE: Final = frozenset({b"connection", b"upgrade", b"http2-settings"})
_READ_AHEAD: Final = 8  # requests; while nothing is read, nobody sees the client go
_TLS: Final = b"\x16\x03"  # what a client's first message begins with


class HttpConnection(HttpToolsProtocol):
    """Hands the app what it needs to end an answer as it was recorded: the transport, and when the client says no more.

    A client that half-closes hears what it has asked for; then the connection is closed. Nothing tells it from one that
    has gone but writing to it.
    """

    def __init__(self, *values: Any, **named: Any) -> None:
        super().__init__(*values, **named)
        self._first_line: FirstLine | None = FirstLine()  # None while the parser is in the middle of a request
        self._method = ""  # of the request at hand, where the parser was told another
        self._in_head = False
        self._declined = False  # the request at hand offers a protocol that is not spoken here
        self._early: bytearray | None = None  # what came for a WebSocket before somebody played it
        self._unanswered: deque[Any] = deque()  # uvicorn's cycles, the one that is being answered first
        self._said_all = asyncio.Event()

    # -- the connection -----------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()  # who is in the middle of a request is not idle
        self.parse(data)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Whether the connection stays open for what is still to be said."""
        self._said_all.set()
        if self.pipeline and self.pipeline[0][0].more_body:
            self._unanswered.remove(self.pipeline.popleft()[0])  # its end will never come
        first = self._unanswered[0] if self._unanswered else None
        return self._early is None and first is not None and not first.more_body

    def connection_lost(self, exc: Exception | None) -> None:
        self._said_all.set()
        for cycle in self._unanswered:  # uvicorn tells the last of them only
            cycle.disconnected = True
            cycle.message_event.set()
        self._unanswered.clear()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        if self._said_all.is_set():  # it has most likely gone: nobody waits for it
            self.transport.close()
        super().shutdown()

    def on_response_complete(self) -> None:
        self._unanswered.popleft()
        super().on_response_complete()
        if self._said_all.is_set() and not self._unanswered:
            self.transport.close()

    # -- the parser ---------------------------------------------------------------------------------------------------

    def parse(self, data: bytes) -> None:
        """What the client sent, all of it."""
        if self._early is not None:
            self._early += data
            return
        if self._first_line is not None:
            data = self._first_line.known(data)
            self._method = self._first_line.method
        if data:
            self._feed(data)

    def _feed(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as stopped:
            self._stopped_at(data[stopped.args[0] :])
        except httptools.HttpParserError as error:
            self.send_400_response(_not_understood(data, error))

    def _stopped_at(self, rest: bytes) -> None:
        """The parser expects another protocol behind a head."""
        if self._early is not None:
            self._early += rest
        elif self._declined:
            self._declined = False
            self._feed(self._head_without_upgrade() + rest)  # with its body, which the parser took for that protocol

    def _head_without_upgrade(self) -> bytes:
        kept = [b"%b: %b" % one for one in self.headers if one[0] not in _OF_AN_UPGRADE]
        return b"\r\n".join([b"%b %b HTTP/1.1" % (self.parser.get_method(), self.url), *kept, b"", b""])

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._first_line = None
        self._in_head = True
        scope: Any = self.scope
        scope[TRANSPORT] = self.transport
        scope[SAID_ALL] = self._said_all

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # the parser tells of trailers, too
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        upgrades = self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT"
        socket = upgrades and opens_socket(headers_of(self.headers))
        if upgrades and not socket:
            self._declined = True
            return
        if self.parser.get_http_version() == "1.0":
            self.expect_100_continue = False  # its clients know of no such answer
        super().on_headers_complete()
        self._unanswered.append(self.cycle)
        if 0 < len(self.pipeline) < _READ_AHEAD:
            self.flow.resume_reading()
        scope: Any = self.scope  # the app runs later
        if self._method:
            scope["method"] = self._method
        if not self.url.startswith(b"/"):
            scope[TARGET] = self.url.decode("latin-1")
        if socket:
            scope[EARLY] = self._early = bytearray()
            self.cycle.keep_alive = False  # whatever comes is no request

    def on_message_complete(self) -> None:
        if self._declined:
            return
        super().on_message_complete()
        self._first_line, self._method = FirstLine(), ""


def _not_understood(data: bytes, error: Exception) -> str:
    """What a client is told whose request is none."""
    if data.startswith(_TLS):
        return "wiretape replay speaks plain HTTP on this port: take http:// in the place of https:// in the base URL"
    if data.startswith(b"CONNECT "):
        return "wiretape replay is no proxy on this port: the variables that it sets name the one that is"
    why = error.__context__ or error  # the parser wraps what our own methods raised
    return f"wiretape replay could not read this as an HTTP/1.1 request: {str(why) or type(why).__name__}"
