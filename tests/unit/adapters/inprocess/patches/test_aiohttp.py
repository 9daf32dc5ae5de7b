"""aiohttp in a replay: how a time-out of the recording reaches who waits, and who is let through by name."""

from __future__ import annotations

import asyncio
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.support.replaying import chat, exchange, stream, user

import wiretape
from wiretape.adapters.inprocess.patches.sockets import WATCH
from wiretape.errors import NetworkRefused
from wiretape.model.http import Ended
from wiretape.tape.format.documents import Header
from wiretape.tape.reading.reader import Tape

aiohttp = pytest.importorskip("aiohttp", reason="aiohttp is not installed")
OPENAI = "https://api.openai.com/v1/chat/completions"
HEADER = Header(wiretape=1, started=datetime(2026, 1, 1, tzinfo=UTC), recorder="wiretape test")


async def heard(until: list[bytes]) -> None:
    async with aiohttp.ClientSession() as session, session.post(OPENAI, json=chat(user("hi"))) as response:
        async for piece in response.content.iter_any():
            until.append(piece)


@pytest.mark.parametrize("said", [["data: 1\n\n"], []], ids=["within the answer", "before it"])
def test_a_time_out_is_the_library_s_own(said: list[str]) -> None:
    answer = stream(*said) if said else None
    slow = exchange(1, chat(user("hi")), answer, url=OPENAI, ended=Ended.TIMEOUT)
    until: list[bytes] = []
    with (
        wiretape.replay(Tape(Path("hand.tape"), HEADER, (slow,), (), False)),
        pytest.raises(aiohttp.SocketTimeoutError, match="Timeout on reading data from socket"),
    ):
        asyncio.run(heard(until))
    assert until == [piece.encode() for piece in said]


class Elsewhere(aiohttp.abc.AbstractResolver):  # type: ignore[misc]
    """Asks no function of Python's, as aiodns does."""

    async def resolve(self, host: str, port: int = 0, family: int = socket.AF_INET) -> list[dict[str, Any]]:
        found = {"host": "203.0.113.21", "hostname": host, "family": socket.AF_INET, "proto": 0, "flags": 0}
        return [{**found, "port": port}]

    async def close(self) -> None:
        pass


async def asked_past(host: str) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(resolver=Elsewhere())) as session:
        await session.get(f"http://{host}/")


def test_who_is_let_through_by_name_is_so_whoever_looked_it_up(monkeypatch: pytest.MonkeyPatch) -> None:
    reached: list[Any] = []

    def connect(sock: socket.socket, address: Any) -> None:
        reached.append(address)
        raise ConnectionRefusedError("nobody is there")

    monkeypatch.setattr(socket.socket, "connect", connect)
    with (
        wiretape.replay(Tape(Path("hand.tape"), HEADER, (), (), False), pass_hosts="tools.example") as ctx,
        pytest.raises(aiohttp.ClientConnectorError, match=r"Cannot connect to host tools\.example:80"),
    ):
        asyncio.run(asked_past("tools.example"))
    assert reached == [("203.0.113.21", 80)]
    assert (ctx.report.passed, ctx.report.strayed) == ({"tools.example:80": 1}, ())
    with wiretape.replay(Tape(Path("hand.tape"), HEADER, (), (), False)), pytest.raises(NetworkRefused):
        WATCH.check("203.0.113.21", 80)
