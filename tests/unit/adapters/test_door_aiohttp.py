"""aiohttp in a replay: how a time-out of the recording reaches who waits."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.support.replaying import chat, exchange, stream, user

import wiretape
from wiretape.model.http import Ended
from wiretape.tape.documents import Header
from wiretape.tape.reader import Tape

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
