"""The server's side of a replayed WebSocket, as bytes: what came in is heard, what is due goes out. No I/O.

Whoever moves the bytes (a thread, a connection of the replay server) asks `due` after each `heard`, then how it `ends`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from wiretape.adapters.http1.ws_frames import PONG, FrameReader, WsEvent, accept, closing, frame, message
from wiretape.matching.sockets.playing import SocketPlay, miss_message
from wiretape.model.http import Headers
from wiretape.tape.redaction import PLACEHOLDER

_POLICY = 1008  # the close code of a miss
_BROKEN = 1002  # of a client that does not keep to the protocol
# What belongs to the recorded handshake, not to this one. No extension is agreed on: what is offered is declined.
_OWN = {
    "connection",
    "content-length",
    "date",
    "sec-websocket-accept",
    "sec-websocket-extensions",
    "sec-websocket-protocol",
    "transfer-encoding",
    "upgrade",
}


def handshake(play: SocketPlay, asked: Headers) -> list[tuple[str, str]]:
    """The headers of the answer to a client's."""
    made = [
        (name, value)
        for name, value in play.headers
        if name not in _OWN and not name.startswith(":") and not PLACEHOLDER.search(value)
    ]
    offered = [one.strip() for value in asked.all("sec-websocket-protocol") for one in value.split(",")]
    chosen = next((value for name, value in play.headers if name == "sec-websocket-protocol"), "")
    made += [("sec-websocket-protocol", chosen)] if chosen in offered else []
    key = accept(asked.get("sec-websocket-key", ""))
    return [*made, ("upgrade", "websocket"), ("connection", "Upgrade"), ("sec-websocket-accept", key)]


def handshake_bytes(play: SocketPlay, asked: Headers) -> bytes:
    lines = [f"{name}: {value}" for name, value in handshake(play, asked)]
    return "\r\n".join(["HTTP/1.1 101 Switching Protocols", *lines, "", ""]).encode("latin-1", "replace")


@dataclass(frozen=True, slots=True)
class Due:
    """Bytes to send after a pause of so many milliseconds."""

    pause: float
    data: bytes


@dataclass(frozen=True, slots=True)
class End:
    """How the server ends a connection: what it says last, and then. Without a close frame it is cut off.

    `reset`: by a TCP reset. `silent`: it ends nothing, but says nothing more until the client goes.
    """

    data: bytes = b""
    reset: bool = False
    silent: bool = False


class SocketTalk:
    """`on_message` is told of each message of the client after the play has heard it. `pace` is that of the pauses.

    `lock` is held while the play is asked: its session may answer others meanwhile.
    """

    def __init__(
        self,
        play: SocketPlay,
        on_message: Callable[[str | bytes], None] | None = None,
        lock: AbstractContextManager[Any] | None = None,
        pace: float = 0,
    ) -> None:
        self.play = play
        self._pace = pace
        self._lock = lock or nullcontext()
        self.over = False  # both sides have closed, or the client has said what nobody understands
        self._on_message = on_message
        self._reader = FrameReader()
        self._closed = False  # we have: what still comes is not heard

    def heard(self, data: bytes) -> bytes:
        """Take in what the client sent; what it gets for it at once: pongs, and an answer to its close."""
        try:
            return b"".join(map(self._answer, self._reader.feed(data)))
        except ValueError as error:
            self.over = True
            return b"" if self._closed else closing(_BROKEN, str(error))

    def due(self) -> list[Due]:
        """What the server sends now."""
        if self.over:
            return []
        with self._lock:
            return [
                Due(one.wait(self._pace), message(one.data) if one.data is not None else b"") for one in self.play.due()
            ]

    def ends(self) -> End | None:
        """How the server ends it, now that nothing is due; None: it does not."""
        play = self.play
        if self.over:
            return None
        if play.miss is not None:
            why = "wiretape: no recorded message answers this one"
            end = End(message(miss_message(play.miss)) + closing(_POLICY, why))
        elif play.close is not None:
            end = End(closing(play.close.code, play.close.reason))
        elif play.cut or play.silent:
            end = End(reset=play.reset, silent=play.silent)
        else:
            return None
        self._closed = True
        return end

    def _answer(self, event: WsEvent) -> bytes:
        if event.kind == "close":
            self.over = True  # even a silent server's client is gone then
            return b"" if self._closed else closing(event.code, str(event.data))
        if self._closed or self.over:
            return b""
        if event.kind == "ping":
            return frame(PONG, bytes(event.data))  # type: ignore[arg-type]
        if event.kind == "message":
            with self._lock:
                self.play.heard(event.data)
            if self._on_message is not None:
                self._on_message(event.data)
        return b""
