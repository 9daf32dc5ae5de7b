"""The other end of a replayed WebSocket in this process: a thread that plays it over a pair of connected sockets.

Libraries poll their sockets, so these must be real ones. No network is involved.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from typing import Final

from wiretape.adapters.http1.messages import RequestReader
from wiretape.adapters.http1.send_playback import response_parts
from wiretape.adapters.http1.websocket_replay import WebSocketReplay, handshake_response
from wiretape.adapters.inprocess.active_context import ActiveContext
from wiretape.matching.playback import Playback
from wiretape.matching.sockets.playing import SocketPlay
from wiretape.matching.values import LiveRequest
from wiretape.model.http import Headers

_CHUNK: Final = 65536
_CLOSE_TIMEOUT_S: Final = 5  # for the client's answer to a close


def connect_to_server(context: ActiveContext, url: str) -> socket.socket:
    """Return the client's end of a connection to a server that answers the handshake for this URL and plays on."""
    return _start(lambda sock: _serve(context, url, sock))


def connect_to_play(context: ActiveContext, play: SocketPlay) -> socket.socket:
    """Return the client's end of a connection whose handshake is done."""
    return _start(lambda sock: _play(context, play, sock, b""))


def _start(serve: Callable[[socket.socket], None]) -> socket.socket:
    ours, theirs = socket.socketpair()

    def run() -> None:
        with ours, contextlib.suppress(OSError):  # the program may disconnect
            serve(ours)

    threading.Thread(target=run, name="wiretape-socket", daemon=True).start()
    return theirs


def _serve(context: ActiveContext, url: str, sock: socket.socket) -> None:
    body: list[bytes] = []
    reader = RequestReader(body.append)
    early = b""
    while not reader.complete:
        data = sock.recv(_CHUNK)
        if not data:
            return
        early = reader.feed(data)
    headers = Headers(reader.headers)
    opened = context.open_socket(LiveRequest(reader.method, url, headers, b"".join(body)))
    if isinstance(opened, Playback):
        for pause, data in response_parts(opened):
            time.sleep(pause / 1000)
            sock.sendall(data)
        return
    sock.sendall(handshake_response(opened, headers))
    _play(context, opened, sock, early)


def _play(context: ActiveContext, play: SocketPlay, sock: socket.socket, data: bytes) -> None:
    replay = WebSocketReplay(play, lock=context.lock, pace=context.pace)
    while not replay.over:
        sock.sendall(replay.receive(data))
        for due in replay.due():
            if due.pause > 0:
                _pause(replay, sock, due.pause / 1000)
            sock.sendall(due.data)
        end = replay.end()
        if end is not None:  # even of a silent server: a client without a timeout would hang
            _end(replay, end.data, sock)
            return
        data = b"" if replay.over else sock.recv(_CHUNK)
        if not data:
            return


def _pause(replay: WebSocketReplay, sock: socket.socket, seconds: float) -> None:
    """Wait, and answer pings during the pause. BrokenPipeError: the client has disconnected."""
    until = time.monotonic() + seconds
    try:
        while (left := until - time.monotonic()) > 0:
            sock.settimeout(left)
            data = sock.recv(_CHUNK)
            sock.sendall(replay.receive(data))
            if not data or replay.over:
                raise BrokenPipeError
    except TimeoutError:
        pass  # the pause is over
    finally:
        sock.settimeout(None)


def _end(replay: WebSocketReplay, end: bytes, sock: socket.socket) -> None:
    sock.sendall(end)
    sock.settimeout(_CLOSE_TIMEOUT_S)
    while end and not replay.over:  # the client answers a close with its own
        data = sock.recv(_CHUNK)
        if not data:
            return
        replay.receive(data)
