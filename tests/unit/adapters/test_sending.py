"""How answers are sent to clients of HTTP/1.0, who know no chunks, and to those who have gone."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest

from wiretape.adapters.sending import TRANSPORT, Scope, Sending
from wiretape.replay.playback import Piece, Playback

PIECES = (Piece(0, b"data: 1\n\n"), Piece(0, b"data: 2\n\n"))
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
