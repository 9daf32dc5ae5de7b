"""Reverse look-ups in process: loopback is answered here, other addresses have no name, and nobody is asked."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import wiretape
from wiretape.adapters.inprocess.network_guard import NetworkGuard
from wiretape.tape.format.documents import Header
from wiretape.tape.reading.reader import Tape

TAPE = Tape(
    Path("hand.tape"), Header(wiretape=1, started=datetime(2026, 1, 1, tzinfo=UTC), recorder="test"), (), (), False
)
FAR = "203.0.113.7"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """What the system's resolver is asked for a name."""
    found: list[Any] = []
    by_address, both = socket.gethostbyaddr, socket.getnameinfo

    def gethostbyaddr(name: str) -> Any:
        found.append(name)
        return "resolved.example", [], [name]

    def getnameinfo(address: Any, flags: int) -> Any:
        if not flags & socket.NI_NUMERICHOST:
            found.append(address[0])
        return both(address, flags | socket.NI_NUMERICHOST)

    monkeypatch.setattr(socket, "gethostbyaddr", gethostbyaddr)
    monkeypatch.setattr(socket, "getnameinfo", getnameinfo)
    yield found
    assert by_address is not socket.gethostbyaddr


def guard(allowed: list[str]) -> NetworkGuard:
    return NetworkGuard(allowed, lambda asked: f"{asked} is refused")


def replay(allowed: list[str]) -> AbstractContextManager[Any]:
    return wiretape.replay(TAPE, pass_hosts=allowed)


GUARDS = pytest.mark.parametrize("made", [guard, replay])


@GUARDS
def test_no_address_is_looked_up(made: Callable[..., Any], asked: list[Any]) -> None:
    with made([]) as open_guard:
        for far in (FAR, "2001:db8::7"):
            with pytest.raises(socket.herror, match="Unknown host"):
                socket.gethostbyaddr(far)
            assert socket.getfqdn(far) == far
            assert socket.getnameinfo((far, 80), socket.NI_NUMERICSERV) == (far, "80")
            with pytest.raises(socket.gaierror):
                socket.getnameinfo((far, 80), socket.NI_NAMEREQD)
        assert socket.getfqdn("leak.example.com") == "leak.example.com"
        assert asyncio.run(in_asyncio()) == (FAR, "80")
    assert asked == []
    if made is replay:
        assert [one.what for one in open_guard.report.strayed] == ["leak.example.com"]  # addresses are not listed


@GUARDS
def test_loopback_has_its_name(made: Callable[..., Any], asked: list[Any]) -> None:
    with made([]):
        assert socket.gethostbyaddr("127.0.0.1") == ("localhost", [], ["127.0.0.1"])
        assert socket.gethostbyaddr("127.0.0.53")[0] == socket.gethostbyaddr("::1")[0] == "localhost"
        assert socket.getfqdn("127.0.0.1") == "localhost"
        assert socket.getnameinfo(("127.0.0.1", 80), socket.NI_NUMERICSERV) == ("localhost", "80")
        assert socket.getnameinfo(("127.0.0.1", 80), socket.NI_NUMERICHOST | socket.NI_NUMERICSERV)[0] == "127.0.0.1"
    assert asked == []


@GUARDS
def test_an_address_that_is_allowed_is_looked_up(made: Callable[..., Any], asked: list[Any]) -> None:
    with made([FAR]):
        assert socket.gethostbyaddr(FAR)[0] == "resolved.example"
        socket.getnameinfo((FAR, 80), 0)
    assert asked == [FAR, FAR]


def test_a_recording_looks_up_what_it_likes(tmp_path: Path, asked: list[Any]) -> None:
    with wiretape.record(tmp_path / "x.tape"):
        assert socket.gethostbyaddr(FAR)[0] == "resolved.example"
    assert asked == [FAR]


async def in_asyncio() -> tuple[str, str]:
    found = await asyncio.get_running_loop().getnameinfo((FAR, 80), socket.NI_NUMERICSERV)
    return str(found[0]), str(found[1])
