"""The server's side of a replayed WebSocket, as bytes: frames of the client in, recorded frames out. No I/O.

Its caller, a thread or a connection of the replay server, calls `receive` for bytes, then `due`, then `end`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Final

from wiretape.adapters.http1.messages import response_head
from wiretape.adapters.http1.websocket_frames import (
    PONG,
    FrameReader,
    WebSocketEvent,
    accept_key,
    close_frame,
    frame,
    message_frame,
)
from wiretape.matching.sockets.playing import SocketPlay, miss_message
from wiretape.model.http import Headers
from wiretape.tape.redaction import PLACEHOLDER

_POLICY_VIOLATION: Final = 1008  # the close code of a miss
_PROTOCOL_ERROR: Final = 1002
# Headers of the recorded handshake that are not sent again. Extensions that the client offers are declined.
_NOT_SENT: Final = frozenset(
    {
        "connection",
        "content-length",
        "date",
        "sec-websocket-accept",
        "sec-websocket-extensions",
        "sec-websocket-protocol",
        "transfer-encoding",
        "upgrade",
    }
)


def handshake_headers(play: SocketPlay, request: Headers) -> list[tuple[str, str]]:
    """Return the headers of the response to a client's handshake."""
    headers = [
        (name, value)
        for name, value in play.headers
        if name not in _NOT_SENT and not name.startswith(":") and not PLACEHOLDER.search(value)
    ]
    offered = [one.strip() for value in request.all("sec-websocket-protocol") for one in value.split(",")]
    chosen = next((value for name, value in play.headers if name == "sec-websocket-protocol"), "")
    headers += [("sec-websocket-protocol", chosen)] if chosen in offered else []
    key = accept_key(request.get("sec-websocket-key", ""))
    return [*headers, ("upgrade", "websocket"), ("connection", "Upgrade"), ("sec-websocket-accept", key)]


def handshake_response(play: SocketPlay, request: Headers) -> bytes:
    return response_head(101, tuple(handshake_headers(play, request))) + b"\r\n"


@dataclass(frozen=True, slots=True)
class TimedBytes:
    """Bytes to send after a pause of so many milliseconds."""

    pause: float
    data: bytes


@dataclass(frozen=True, slots=True)
class ConnectionEnd:
    """How the server ends a connection: the last bytes that it sends. Without a close frame the connection is cut.

    `reset`: by a TCP reset. `silent`: it stays open without further bytes until the client disconnects.
    """

    data: bytes = b""
    reset: bool = False
    silent: bool = False


class WebSocketReplay:
    """Plays a recorded WebSocket to one client.

    `on_message` is called for each message of the client after it was matched. `pace` scales the recorded pauses.
    `lock` is held while the play is used, because other threads may use its session.
    """

    def __init__(
        self,
        play: SocketPlay,
        on_message: Callable[[str | bytes], None] | None = None,
        lock: AbstractContextManager[Any] | None = None,
        pace: float = 0,
    ) -> None:
        self._play = play
        self._pace = pace
        self._lock = lock or nullcontext()
        self.over = False  # both sides have closed, or the client has broken the protocol
        self._on_message = on_message
        self._reader = FrameReader()
        self._closed = False  # by this side: messages that still arrive are ignored

    def receive(self, data: bytes) -> bytes:
        """Read bytes of the client; return the immediate reply: pongs, and the answer to its close."""
        try:
            return b"".join(map(self._handle, self._reader.feed(data)))
        except ValueError as error:
            self.over = True
            return b"" if self._closed else close_frame(_PROTOCOL_ERROR, str(error))

    def due(self) -> list[TimedBytes]:
        """Return what the server sends now."""
        if self.over:
            return []
        with self._lock:
            return [
                TimedBytes(one.wait(self._pace), message_frame(one.data) if one.data is not None else b"")
                for one in self._play.due()
            ]

    def end(self) -> ConnectionEnd | None:
        """Return how the server ends the connection after the last message; None if it stays open."""
        play = self._play
        if self.over:
            return None
        if play.miss is not None:
            why = "wiretape: no recorded message answers this one"
            end = ConnectionEnd(message_frame(miss_message(play.miss)) + close_frame(_POLICY_VIOLATION, why))
        elif play.close is not None:
            end = ConnectionEnd(close_frame(play.close.code, play.close.reason))
        elif play.cut or play.silent:
            end = ConnectionEnd(reset=play.reset, silent=play.silent)
        else:
            return None
        self._closed = True
        return end

    def _handle(self, event: WebSocketEvent) -> bytes:
        if event.kind == "close":
            self.over = True  # the client of a silent server, too, has gone then
            return b"" if self._closed else close_frame(event.code, str(event.data))
        if self._closed or self.over:
            return b""
        if event.kind == "ping":
            return frame(PONG, bytes(event.data))  # type: ignore[arg-type]
        if event.kind == "message":
            with self._lock:
                self._play.receive(event.data)
            if self._on_message is not None:
                self._on_message(event.data)
        return b""
