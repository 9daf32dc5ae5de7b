"""The other end of a replayed WebSocket: a thread that plays it over a pair of connected sockets in this process.

Libraries poll their sockets, so that these must be real ones. No network is involved.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from typing import Any

from wiretape.adapters.http1.messages import RequestReader
from wiretape.adapters.http1.sending import response_parts
from wiretape.adapters.http1.websocket_talk import SocketTalk, handshake_bytes
from wiretape.adapters.inprocess.active_context import ActiveContext
from wiretape.matching.playback import Playback
from wiretape.matching.sockets.playing import SocketPlay
from wiretape.matching.values import LiveRequest
from wiretape.model.http import Headers

_CHUNK = 65536


def connected(context: ActiveContext, url: str) -> socket.socket:
    """The client's end of a connection to a server that answers the handshake for this URL, and plays on."""
    return _started(lambda sock: _serve(context, url, sock))


def played(context: ActiveContext, play: SocketPlay) -> socket.socket:
    """The client's end of a connection whose handshake is over."""
    return _started(lambda sock: _play(context, play, sock, b""))


def _started(serve: Any) -> socket.socket:
    ours, theirs = socket.socketpair()

    def run() -> None:
        with ours, contextlib.suppress(OSError):  # the program may go away
            serve(ours)

    threading.Thread(target=run, name="wiretape-socket", daemon=True).start()
    return theirs


def _serve(context: ActiveContext, url: str, sock: socket.socket) -> None:
    body: list[bytes] = []
    reader = RequestReader(body.append)
    left = b""
    while not reader.complete:
        data = sock.recv(_CHUNK)
        if not data:
            return
        left = reader.feed(data)
    headers = Headers(reader.headers)
    opened = context.open_socket(LiveRequest(reader.method, url, headers, b"".join(body)))
    if isinstance(opened, Playback):
        for pause, data in response_parts(opened):
            time.sleep(pause / 1000)
            sock.sendall(data)
        return
    sock.sendall(handshake_bytes(opened, headers))
    _play(context, opened, sock, left)


def _play(context: ActiveContext, play: SocketPlay, sock: socket.socket, data: bytes) -> None:
    talk = SocketTalk(play, lock=context.lock, pace=context.pace)
    while not talk.over:
        sock.sendall(talk.heard(data))
        for one in talk.due():
            if one.pause > 0:
                _pause(talk, sock, one.pause / 1000)
            sock.sendall(one.data)
        end = talk.ends()
        if end is not None:  # whatever it is: a silent server's client would wait for ever, where it has no time limit
            _end(talk, end.data, sock)
            return
        data = b"" if talk.over else sock.recv(_CHUNK)
        if not data:
            return


def _pause(talk: SocketTalk, sock: socket.socket, seconds: float) -> None:
    """Wait, and hear meanwhile: a client that gets no pong gives up. It ends at once when the client goes."""
    until = time.monotonic() + seconds
    try:
        while (left := until - time.monotonic()) > 0:
            sock.settimeout(left)
            data = sock.recv(_CHUNK)
            sock.sendall(talk.heard(data))
            if not data or talk.over:
                raise BrokenPipeError
    except TimeoutError:
        pass  # it was as long as it should be
    finally:
        sock.settimeout(None)


def _end(talk: SocketTalk, end: bytes, sock: socket.socket) -> None:
    sock.sendall(end)
    sock.settimeout(5)
    while end and not talk.over:  # the client answers a close with its own
        data = sock.recv(_CHUNK)
        if not data:
            return
        talk.heard(data)
