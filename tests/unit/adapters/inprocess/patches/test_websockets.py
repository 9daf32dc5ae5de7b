"""The function that stood in `websockets` before it had a class for its threading client."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import wiretape
from wiretape.adapters.inprocess.patches.patching import PATCHES, apply_patches, remove_patches
from wiretape.tape.format.documents import Header
from wiretape.tape.reading.reader import Tape

pytest.importorskip("websockets")


def connect(uri: str, *, sock: socket.socket | None = None, ssl: Any = None) -> tuple[str, bool]:
    """What the function does with the socket that it is given."""
    assert sock is not None, "it would open a connection"
    with sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        wrapped = ssl.wrap_socket(sock, server_hostname="models.example") if ssl is not None else sock
        return uri, wrapped is sock


@pytest.fixture
def by_name(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], tuple[str, bool]]]:
    """The function as a program has it that imported it by name, before any context opened."""
    module = ModuleType("websockets.sync.client")
    module.connect = connect  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for name in set(PATCHES) - {module.__name__, "websockets.protocol"}:
        monkeypatch.delitem(PATCHES, name)
    code = connect.__code__
    yield connect
    assert connect.__code__ is code
    with pytest.raises(AssertionError, match="it would open a connection"):
        connect("ws://models.example/v1")


@pytest.mark.parametrize("uri", ["ws://models.example/v1", "wss://models.example/v1"])
def test_the_library_may_set_what_it_sets_on_tcp_and_begin_its_tls(
    by_name: Callable[[str], tuple[str, bool]], uri: str
) -> None:
    header = Header(wiretape=1, started=datetime(2026, 1, 1, tzinfo=UTC), recorder="wiretape test")
    with wiretape.replay(Tape(Path("hand.tape"), header, (), (), False)):
        assert by_name(uri) == (uri, True)


def test_what_goes_elsewhere_is_the_function_s_own_work(by_name: Callable[..., tuple[str, bool]]) -> None:
    """Nothing replays here, or the program has a socket of its own."""
    apply_patches()
    try:
        one, other = socket.socketpair()
        with other, pytest.raises(OSError, match="not supported"):
            by_name("ws://models.example/v1", sock=one)
        with pytest.raises(AssertionError, match="it would open a connection"):
            by_name("ws://models.example/v1")
    finally:
        remove_patches()
