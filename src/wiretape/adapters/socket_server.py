"""The other end of a replayed WebSocket: a thread that plays it over a pair of connected sockets in this process.

Libraries poll their sockets, so that these must be real ones. No network is involved.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

from wiretape.adapters.http1 import RequestReader, answer
from wiretape.adapters.inside import Inside
from wiretape.adapters.ws_frames import FrameReader, accept, closing, frame, message
from wiretape.model.http import Headers
from wiretape.replay.playback import Playback
from wiretape.replay.sockets import Frame, SocketPlay, miss_message
from wiretape.replay.values import LiveRequest

_CHUNK = 65536
_POLICY = 1008  # the close code of a miss
_PONG = 10
# What belongs to the recorded handshake, not to this one.
_OWN = {"connection", "upgrade", "sec-websocket-accept", "sec-websocket-extensions", "content-length", "date"}


def connected(context: Inside, url: str) -> socket.socket:
    """The client's end of a connection to a server that answers the handshake for this URL, and plays on."""
    return _started(lambda sock: _serve(context, url, sock))


def played(context: Inside, play: SocketPlay) -> socket.socket:
    """The client's end of a connection whose handshake is over."""
    return _started(lambda sock: _play(context, play, sock, b""))


def handshake(play: SocketPlay, key: str) -> list[tuple[str, str]]:
    """The headers of the answer."""
    kept = [(name, value) for name, value in play.headers if name not in _OWN and not name.startswith(":")]
    return [*kept, ("upgrade", "websocket"), ("connection", "Upgrade"), ("sec-websocket-accept", accept(key))]


def _started(serve: Any) -> socket.socket:
    ours, theirs = socket.socketpair()

    def run() -> None:
        with ours, contextlib.suppress(OSError):  # the program may go away
            serve(ours)

    threading.Thread(target=run, name="wiretape-socket", daemon=True).start()
    return theirs


def _serve(context: Inside, url: str, sock: socket.socket) -> None:
    body: list[bytes] = []
    reader = RequestReader(body.append)
    left = b""
    while not reader.complete:
        data = sock.recv(_CHUNK)
        if not data:
            return
        left = reader.feed(data)
    headers = Headers(reader.headers)
    opened = context.socket(LiveRequest(reader.method, url, headers, b"".join(body)))
    if isinstance(opened, Playback):
        for pause, data in answer(opened):
            time.sleep(pause / 1000)
            sock.sendall(data)
        return
    lines = ["HTTP/1.1 101 Switching Protocols"]
    lines += [f"{name}: {value}" for name, value in handshake(opened, headers.get("sec-websocket-key", ""))]
    sock.sendall("\r\n".join([*lines, "", ""]).encode("latin-1", "replace"))
    _play(context, opened, sock, left)


def _play(context: Inside, play: SocketPlay, sock: socket.socket, data: bytes) -> None:
    reader = FrameReader()
    while True:
        for event in reader.feed(data):
            if event.kind == "message":
                with context.lock:
                    play.heard(event.data)
            elif event.kind == "ping":
                sock.sendall(frame(_PONG, bytes(event.data)))  # type: ignore[arg-type]
            elif event.kind == "close":
                sock.sendall(closing(event.code, str(event.data)))
                return
        for due in _due(context, play):
            time.sleep(due.pause * context.pace / 1000)
            sock.sendall(message(due.data))
        if _ended(play, sock):
            return
        data = sock.recv(_CHUNK)
        if not data:
            return


def _due(context: Inside, play: SocketPlay) -> Iterator[Frame]:
    with context.lock:
        return iter(play.due())


def _ended(play: SocketPlay, sock: socket.socket) -> bool:
    if play.miss is not None:
        sock.sendall(message(miss_message(play.miss)))
        sock.sendall(closing(_POLICY, "wiretape: no recorded message answers this one"))
    elif play.close is not None:
        sock.sendall(closing(play.close.code, play.close.reason))
    else:
        return play.cut
    reader = FrameReader()
    sock.settimeout(5)
    while data := sock.recv(_CHUNK):  # the client answers a close with its own
        if any(event.kind == "close" for event in reader.feed(data)):
            break
    return True
