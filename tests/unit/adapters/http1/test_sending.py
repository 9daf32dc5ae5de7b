"""How answers are sent to clients of HTTP/1.0, who know no chunks, and to those who have gone."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest

from wiretape.adapters.http1.sending import SAID_ALL, TRANSPORT, ClientGone, Scope, Sending
from wiretape.matching.faults.apply import FOREVER_MS
from wiretape.matching.playback import Chunk, Playback

PIECES = (Chunk(0, b"data: 1\n\n"), Chunk(0, b"data: 2\n\n"))
EVENTS = [("content-type", "text/event-stream")]


def sent(shown: Playback, version: str) -> list[MutableMapping[str, Any]]:
    told: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        raise AssertionError("nothing is waited for")

    async def send(one: MutableMapping[str, Any]) -> None:
        told.append(one)

    scope: Scope = {"type": "http", "http_version": version}
    asyncio.run(Sending(scope, receive, send).play(shown))
    return told


@pytest.mark.parametrize(
    ("version", "cut", "length"),
    [("1.1", False, None), ("1.0", False, b"18"), ("1.0", True, b"19")],
)
def test_a_stream_has_a_length_where_there_are_no_chunks_and_more_than_came_where_it_breaks_off(
    version: str, cut: bool, length: bytes | None
) -> None:
    told = sent(Playback(200, EVENTS, PIECES, streamed=True, cut=cut), version)
    assert dict(told[0]["headers"]).get(b"content-length") == length
    assert b"".join(one["body"] for one in told[1:]) == b"data: 1\n\ndata: 2\n\n"
    assert told[-1]["more_body"] is cut


class Closing(asyncio.Transport):
    def is_closing(self) -> bool:
        return True

    def close(self) -> None:
        pass


def test_nothing_more_is_written_to_a_connection_that_is_closing() -> None:
    told: list[MutableMapping[str, Any]] = []

    async def nothing() -> MutableMapping[str, Any]:
        raise AssertionError("nothing is waited for")

    async def send(one: MutableMapping[str, Any]) -> None:
        told.append(one)

    scope: Scope = {"type": "http", "http_version": "1.1", TRANSPORT: Closing()}
    asyncio.run(Sending(scope, nothing, send).play(Playback(200, EVENTS, PIECES, streamed=True)))
    assert [one["type"] for one in told] == ["http.response.start"]


class Open(asyncio.Transport):
    closed = False

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


class Silent:
    """A connection whose client says no more, and may listen."""

    def __init__(self) -> None:
        self.told: list[MutableMapping[str, Any]] = []
        self.transport = Open()

    async def receive(self) -> MutableMapping[str, Any]:
        await asyncio.Event().wait()  # nobody has gone
        raise AssertionError

    async def send(self, one: MutableMapping[str, Any]) -> None:
        self.told.append(one)

    def sending(self) -> Sending:
        said_all = asyncio.Event()
        said_all.set()
        scope: Scope = {"type": "http", "http_version": "1.1", TRANSPORT: self.transport, SAID_ALL: said_all}
        return Sending(scope, self.receive, self.send)


@pytest.mark.parametrize(("pause", "heard", "closed"), [(20, 2, False), (61_000, 1, True), (FOREVER_MS, 1, True)])
def test_a_client_that_says_no_more_is_waited_for_where_something_comes_soon(
    pause: float, heard: int, closed: bool
) -> None:
    client = Silent()

    async def playing() -> None:
        sending = client.sending()
        pieces = (PIECES[0], Chunk(pause, PIECES[1].data))
        await asyncio.wait_for(sending.play(Playback(200, EVENTS, pieces, streamed=True)), 10)
        sending.over()

    asyncio.run(playing())
    assert sum(bool(one.get("body")) for one in client.told) == heard
    assert client.transport.closed is closed


def test_a_client_that_says_no_more_waits_for_no_decision_but_gets_what_is_decided_already() -> None:
    async def decided() -> str:
        return "answer"

    async def undecided() -> str:
        await asyncio.Event().wait()
        raise AssertionError

    async def holding() -> str:
        sending = Silent().sending()
        shown = Playback(200, EVENTS, PIECES, streamed=True)
        got = await sending.held(decided(), shown)
        with pytest.raises(ClientGone):
            await asyncio.wait_for(sending.held(undecided(), shown), 10)
        sending.over()
        return got

    assert asyncio.run(holding()) == "answer"
