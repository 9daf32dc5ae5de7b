"""HTTP/1.1 as bytes, for doors that stand below a library's own parser: requests and responses read, answers written.

No I/O: bytes come in, calls and bytes go out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from http import HTTPStatus
from typing import TypeAlias

import httptools

from wiretape.adapters.inprocess.exchange_recorder import ExchangeRecorder
from wiretape.adapters.inprocess.sockets.socket_tap import SocketTap
from wiretape.matching.playback import Playback
from wiretape.model.http import Ended

Pairs: TypeAlias = list[tuple[str, str]]


class RequestReader:
    """Reads one request from what a client sends. The calls must not raise: the parser would hide what they raise."""

    def __init__(self, body: Callable[[bytes], None], head: Callable[[Pairs], None] | None = None) -> None:
        self.on_body = body
        self._head = head
        self.method = ""
        self.headers: Pairs = []
        self.complete = False
        self._parser = httptools.HttpRequestParser(self)

    def feed(self, data: bytes) -> bytes:
        """What is left over: bytes after a request to switch protocols."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as switch:
            return data[switch.args[0] :]
        return b""

    # what the parser calls

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.decode("latin-1"), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        self.method = self._parser.get_method().decode()
        if self._head is not None:
            self._head(self.headers)

    def on_message_complete(self) -> None:
        self.complete = True


class ResponseReader:
    """Reads the response to one request. `complete` says whether all of it has come."""

    def __init__(self, head_only: bool, head: Callable[[int, Pairs], None], body: Callable[[bytes], None]) -> None:
        self._head_only = head_only  # the answer to HEAD
        self._head = head
        self._body = body
        self._headers: Pairs = []
        self._status = 0
        self._until_eof = False
        self.complete = False
        self._parser = httptools.HttpResponseParser(self)

    def feed(self, data: bytes) -> bytes:
        """What is left over: bytes of the protocol that was switched to."""
        if self.complete:
            return b""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as switch:
            return data[switch.args[0] :]
        except httptools.HttpParserError:
            if not self.complete:  # after the head of an answer to HEAD the parser expects its body
                raise
        return b""

    def eof(self) -> None:
        if self._until_eof:
            self.complete = True

    # what the parser calls

    def on_message_begin(self) -> None:
        self._headers, self._status = [], 0

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._status:  # else a trailer
            self._headers.append((name.decode("latin-1"), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        self._status = self._parser.get_status_code()
        if self._status < 200 and self._status != 101:
            return
        names = {name.lower() for name, _ in self._headers}
        self._until_eof = not names & {"content-length", "transfer-encoding"}
        self._head(self._status, self._headers)
        self.complete = self._head_only

    def on_body(self, data: bytes) -> None:
        if not self.complete:
            self._body(data)

    def on_message_complete(self) -> None:
        self.complete = self.complete or (self._status >= 200)


class Tap:
    """Both directions of one exchange on their way past: told to the tape. Never raises.

    `begin` makes the exchange from the headers that were really sent; None: its host is not recorded.
    """

    def __init__(self, method: str, begin: Callable[[Pairs], ExchangeRecorder | None]) -> None:
        self._begin = begin
        self.taken: ExchangeRecorder | None = None
        self._begun = False
        self._over = False
        self._socket: SocketTap | None = None  # after the protocol was switched
        self._request = RequestReader(self._sent, self._head)
        self._response = ResponseReader(method.upper() == "HEAD", self._responded, self._received)

    @property
    def over(self) -> bool:
        """Nothing more is to be told."""
        return self._over

    def sent(self, data: bytes) -> None:
        if self._socket is not None:
            self._socket.sent(data)
            return
        self._told(self._request.feed, data)
        if self._request.complete and self.taken is not None:
            self.taken.sent_all()

    def received(self, data: bytes) -> None:
        left = data if self._socket is not None else self._told(self._response.feed, data)
        if self._socket is not None:
            self._socket.received(left)
        elif self._response.complete:
            self._end(Ended.COMPLETE)

    def eof(self, error: BaseException | None = None) -> None:
        """The other side's end."""
        if self._socket is not None:
            self._socket.eof(error)
            self._over = True
            return
        self._response.eof()
        self._end(Ended.COMPLETE if self._response.complete and error is None else Ended.UPSTREAM_CLOSED)

    def hung_up(self) -> None:
        """The program's end."""
        if self._socket is not None:
            self._socket.hung_up()
        elif not self._over and self.taken is not None:
            self.taken.hung_up()
        self._over = True

    def failed(self, error: BaseException, headers: Sequence[tuple[str, str]], body: object) -> None:
        """An error before there was a response. What was not sent yet is told all the same."""
        if self._over:
            return
        if not self._begun:
            self._head(list(headers))
            self._sent(body.encode() if isinstance(body, str) else body if isinstance(body, bytes) else b"")
        self._over = True
        if self.taken is not None:
            self.taken.failed(error)

    def _told(self, feed: Callable[[bytes], bytes], data: bytes) -> bytes:
        if self._over:
            return b""
        try:
            return feed(bytes(data))
        except Exception:  # odd bytes, which the library itself may accept
            self._end(Ended.RECORDER_STOPPED)
            return b""

    def _end(self, ended: Ended) -> None:
        if not self._over and self.taken is not None:
            self.taken.end(ended)
        self._over = True

    def _head(self, headers: Pairs) -> None:
        self._begun = True
        self.taken = self._begin(headers)
        self._over = self.taken is None

    def _sent(self, data: bytes) -> None:
        if self.taken is not None:
            self.taken.sent(data)

    def _responded(self, status: int, headers: Pairs) -> None:
        if self.taken is not None:
            self.taken.response(status, headers)
            if status == 101:
                agreed = [value for name, value in headers if name.lower() == "sec-websocket-extensions"]
                self._socket = SocketTap(self.taken, ",".join(agreed))

    def _received(self, data: bytes) -> None:
        if self.taken is not None:
            self.taken.received(data)


def answer(shown: Playback) -> Iterator[tuple[float, bytes]]:
    """An answer as it is written to a connection: (pause in milliseconds, bytes). The connection ends after it."""
    if shown.status is None:
        yield shown.pause, b""
        return
    try:
        phrase = HTTPStatus(shown.status).phrase
    except ValueError:
        phrase = ""
    lines = [f"HTTP/1.1 {shown.status} {phrase}", *(f"{name}: {value}" for name, value in shown.headers)]
    lines += ["connection: close", *(["transfer-encoding: chunked"] if shown.streamed else []), "", ""]
    yield shown.pause, "\r\n".join(lines).encode("latin-1", "replace")
    for piece in shown.pieces:
        if piece.data:
            yield piece.pause, b"%x\r\n%b\r\n" % (len(piece.data), piece.data) if shown.streamed else piece.data
    if shown.streamed and not shown.cut:
        yield 0, b"0\r\n\r\n"
