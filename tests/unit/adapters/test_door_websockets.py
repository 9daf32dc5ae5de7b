"""The function that stood in `websockets` before it had a class for its threading client."""

from __future__ import annotations

import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import wiretape
from wiretape.adapters.door_websockets import _connect
from wiretape.tape.documents import Header
from wiretape.tape.reader import Tape

pytest.importorskip("websockets")


def connect(uri: str, *, sock: socket.socket, ssl: Any = None) -> tuple[str, bool]:
    """What the function does with the socket that it is given."""
    with sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        wrapped = ssl.wrap_socket(sock, server_hostname="models.example") if ssl is not None else sock
        return uri, wrapped is sock


@pytest.mark.parametrize("uri", ["ws://models.example/v1", "wss://models.example/v1"])
def test_the_library_may_set_what_it_sets_on_tcp_and_begin_its_tls(uri: str) -> None:
    header = Header(wiretape=1, started=datetime(2026, 1, 1, tzinfo=UTC), recorder="wiretape test")
    with wiretape.replay(Tape(Path("hand.tape"), header, (), (), False)):
        assert _connect(connect)(uri) == (uri, True)
