"""HTTP/1.1 messages as bytes: readers on httptools, and one writer each for heads and chunks. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from http import HTTPStatus
from typing import Final, NamedTuple, TypeAlias

import httptools

Pairs: TypeAlias = list[tuple[str, str]]

CLOSE: Final = (("connection", "close"),)
LAST_CHUNK: Final = b"0\r\n\r\n"
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")  # a line end in a value would begin another header


class RequestReader:
    """Reads one request from the bytes of a client.

    The callbacks must not raise: httptools would replace their exception by its own.
    """

    def __init__(self, body: Callable[[bytes], None], head: Callable[[Pairs], None] | None = None) -> None:
        self.on_body = body  # called by the parser
        self._head = head
        self.method = ""
        self.headers: Pairs = []
        self.complete = False
        self._parser = httptools.HttpRequestParser(self)

    def feed(self, data: bytes) -> bytes:
        """Read bytes; return those after a request that switches protocols."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as switch:
            return data[switch.args[0] :]
        return b""

    # called by the parser

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.decode("latin-1"), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        self.method = self._parser.get_method().decode()
        if self._head is not None:
            self._head(self.headers)

    def on_message_complete(self) -> None:
        self.complete = True


class ResponseReader:
    """Reads the response to one request; `complete` is True after its last byte. Interim responses are skipped."""

    def __init__(self, head_only: bool, head: Callable[[int, Pairs], None], body: Callable[[bytes], None]) -> None:
        self._head_only = head_only  # the response to HEAD
        self._head = head
        self._body = body
        self._headers: Pairs = []
        self._status = 0
        self._until_eof = False
        self.complete = False
        self._parser = httptools.HttpResponseParser(self)

    def feed(self, data: bytes) -> bytes:
        """Read bytes; return those of the protocol that the response switches to."""
        if self.complete:
            return b""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as switch:
            return data[switch.args[0] :]
        except httptools.HttpParserError:
            if not self.complete:  # the parser expects a body after the head of a response to HEAD
                raise
        return b""

    def eof(self) -> None:
        """The connection has ended, and with it a body without a length."""
        if self._until_eof:
            self.complete = True

    # called by the parser

    def on_message_begin(self) -> None:
        self._headers, self._status = [], 0

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._status:  # else it is a trailer
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
        self.complete = self.complete or self._status >= 200


class RequestHead(NamedTuple):
    """A request's first line and headers, as sent to a proxy."""

    method: str
    target: str
    version: str
    headers: Sequence[tuple[bytes, bytes]]

    @property
    def host(self) -> str:
        """The value of the `Host` header; empty if the request has none."""
        return next((value.decode("latin-1") for name, value in self.headers if name.lower() == b"host"), "")

    def to_bytes(self, target: str, leave_out: frozenset[bytes] = frozenset(), *more: tuple[bytes, bytes]) -> bytes:
        """Return the head for another target, without the headers of these names and with `more` at its end."""
        kept = [pair for pair in self.headers if pair[0].lower() not in leave_out]
        first = f"{self.method} {target} HTTP/{self.version}".encode("latin-1")
        return b"\r\n".join([first, *(b"%b: %b" % pair for pair in (*kept, *more)), b"", b""])


def read_request_head(raw: bytes) -> RequestHead:
    """Read the head of a request, up to its empty line. ValueError: it is not one of HTTP/1."""
    reader = _HeadReader()
    parser = httptools.HttpRequestParser(reader)
    try:
        parser.feed_data(raw)
    except httptools.HttpParserUpgrade:
        pass  # CONNECT, or a handshake: another protocol follows
    except httptools.HttpParserError as error:
        raise ValueError(f"it is not an HTTP/1 request: {error}") from None
    if not reader.complete:
        raise ValueError("it is not an HTTP/1 request: its head has no end")
    method, version = parser.get_method().decode(), parser.get_http_version()
    return RequestHead(method, reader.target.decode("latin-1"), version, reader.headers)


class _HeadReader:
    def __init__(self) -> None:
        self.target = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.complete = False

    def on_headers_complete(self) -> None:
        self.complete = True

    def on_url(self, url: bytes) -> None:
        self.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))


@lru_cache(256)  # the responses of a tape have much the same headers
def response_head(status: int, headers: tuple[tuple[str, str], ...]) -> bytes:
    """Write a status line and headers, without the empty line after them.

    Headers whose names HTTP does not permit are left out; control characters in values become spaces.
    """
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    lines = [f"{name}: {_CONTROL.sub(' ', value)}\r\n" for name, value in headers if _NAME.fullmatch(name)]
    return f"HTTP/1.1 {status} {phrase}\r\n{''.join(lines)}".encode("latin-1", "replace")


def response(status: int, headers: Iterable[tuple[str, str]], body: bytes, keep_alive: bool = True) -> bytes:
    """Write a whole response with its content-length, which 204 has not."""
    head = response_head(status, (*headers, *(() if keep_alive else CLOSE)))
    return b"%b\r\n" % head if status == 204 else b"%bcontent-length: %d\r\n\r\n%b" % (head, len(body), body)


def chunk(data: bytes) -> bytes:
    """Write one chunk of a chunked body. An empty chunk would end the body: empty data gives no bytes."""
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""
