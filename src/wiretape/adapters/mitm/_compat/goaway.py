"""Let the streams of an HTTP/2 upstream end after a graceful GOAWAY. mitmproxy would cut them.

A server that shuts down announces the last stream that it will finish. h2 and mitmproxy take that for the end of the
connection. This patch removes such frames before h2 reads them. Streams after the announced one fail, and new requests
get another connection. Seen with mitmproxy 12.3.1 and h2 4.4.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from weakref import WeakSet

from mitmproxy.proxy import events
from mitmproxy.proxy.layers import http
from mitmproxy.proxy.layers.http import ErrorCode, ReceiveHttp, RequestHeaders, ResponseProtocolError, _http2

_HEAD: Final = 9  # bytes before a frame's payload
_GOAWAY: Final = 7
_NO_ERROR: Final = 0
_INSTALLED: Final = "wiretape_goaway"
_DRAINING: WeakSet[Any] = WeakSet()  # connections that take no new stream


class GoawayFilter:
    """Removes graceful GOAWAY frames from the bytes of a server. `last`: the last stream that it will finish."""

    def __init__(self) -> None:
        self.last: int | None = None
        self._passing = 0  # remaining bytes of a frame that is kept
        self._held = b""  # the beginning of a frame

    def feed(self, data: bytes) -> bytes:
        data = self._held + data if self._held else data
        kept, at = [], 0
        while at < len(data):
            if not self._passing:
                frame = self._frame(data, at)
                if frame is None:
                    break
                if _is_graceful(frame):
                    self.last = int.from_bytes(frame[_HEAD : _HEAD + 4]) & 0x7FFFFFFF
                    at += len(frame)
                    continue
                self._passing = _HEAD + int.from_bytes(frame[:3])
            piece = data[at : at + self._passing]
            kept.append(piece)
            at += len(piece)
            self._passing -= len(piece)
        self._held = data[at:]
        return b"".join(kept)

    @staticmethod
    def _frame(data: bytes, at: int) -> bytes | None:
        """Return the head of a frame, or all of it if it is a GOAWAY; None if more bytes are needed."""
        head = data[at : at + _HEAD]
        if len(head) < _HEAD:
            return None
        size = _HEAD + int.from_bytes(head[:3]) if head[3] == _GOAWAY else _HEAD
        return data[at : at + size] if len(data) - at >= size else None


def _is_graceful(frame: bytes) -> bool:
    return frame[3] == _GOAWAY and len(frame) >= _HEAD + 8 and int.from_bytes(frame[_HEAD + 4 : _HEAD + 8]) == _NO_ERROR


def install() -> None:
    """Patch mitmproxy, once in a process. If it lacks these parts, nothing is patched."""
    client = getattr(_http2, "Http2Client", None)
    asked = getattr(http, "GetHttpConnection", None)
    if client is None or asked is None or getattr(client, _INSTALLED, False):
        return
    setattr(client, _INSTALLED, True)
    client._handle_event = _finishing_streams(client._handle_event)
    asked.connection_spec_matches = _not_draining(asked.connection_spec_matches)


def _finishing_streams(handle_event: Any) -> Any:
    def handled(self: Any, event: Any) -> Iterator[Any]:
        if isinstance(event, events.DataReceived):
            goaway: GoawayFilter = self.__dict__.setdefault(_INSTALLED, GoawayFilter())
            before = goaway.last
            yield from handle_event(self, events.DataReceived(event.connection, goaway.feed(event.data)))
            if goaway.last is not None and goaway.last != before:
                _DRAINING.add(self.conn)
                yield from _abandoned(self, goaway.last)
        elif isinstance(event, RequestHeaders) and self.conn in _DRAINING:
            yield _failed(event.stream_id)
        elif not (self.conn in _DRAINING and _is_unknown(self, event)):
            yield from handle_event(self, event)

    return handled


def _is_unknown(client: Any, event: Any) -> bool:
    """Return whether an event belongs to a stream that was not opened on this connection."""
    return isinstance(event, http.HttpEvent) and event.stream_id not in client.our_stream_id


def _abandoned(client: Any, last: int) -> Iterator[Any]:
    """Fail the streams that the server will not finish."""
    for stream in [number for number in client.streams if number > last]:
        client.streams.pop(stream)
        yield _failed(client.their_stream_id[stream])


def _failed(stream: int) -> ReceiveHttp:
    message = "HTTP/2 connection closed: the server ends it and did not process this stream"
    return ReceiveHttp(ResponseProtocolError(stream, message, ErrorCode.GENERIC_SERVER_ERROR))


def _not_draining(matches: Any) -> Any:
    def connection_spec_matches(self: Any, connection: Any) -> bool:
        return connection not in _DRAINING and bool(matches(self, connection))

    return connection_spec_matches
