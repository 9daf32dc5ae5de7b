"""How answers are sent: in one piece, in parts, to clients of HTTP/1.0, and to clients that have gone."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from wiretape.adapters.http1.send_playback import ClientGone, PlaybackSender, response_parts, whole_response
from wiretape.adapters.http1.server import Connections, HttpConnection, HttpRequest
from wiretape.matching.faults.apply import FOREVER_MS
from wiretape.matching.playback import Chunk, Playback
from wiretape.model.http import Headers

PIECES = (Chunk(0, b"data: 1\n\n"), Chunk(0, b"data: 2\n\n"))
EVENTS = Playback(200, [("content-type", "text/event-stream")], PIECES, streamed=True)
PLAIN = Playback(200, [("content-type", "text/plain"), ("content-length", "2")], [Chunk(0, b"ok")])
REQUEST = HttpRequest("POST", "/x", Headers(), b"", "1.1", True, False)


# -- in one piece -----------------------------------------------------------------------------------------------------


def test_a_body_of_known_length_is_one_piece_with_its_head() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n"
    assert whole_response(PLAIN, REQUEST) == head + b"content-length: 2\r\n\r\nok"
    closing = REQUEST._replace(keep_alive=False)
    assert whole_response(PLAIN, closing) == head + b"connection: close\r\ncontent-length: 2\r\n\r\nok"


def test_the_response_to_head_has_a_length_and_no_body() -> None:
    sent = whole_response(PLAIN, REQUEST._replace(method="HEAD"))
    assert sent == b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\n"
    sent = whole_response(EVENTS, REQUEST._replace(method="HEAD"))
    assert sent == b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"


def test_a_response_without_a_body_ends_with_its_head() -> None:
    assert whole_response(Playback(204, [], ()), REQUEST) == b"HTTP/1.1 204 No Content\r\n\r\n"
    assert whole_response(replace(EVENTS, status=304), REQUEST) == (
        b"HTTP/1.1 304 Not Modified\r\ncontent-type: text/event-stream\r\n\r\n"
    )


def test_a_short_stream_is_one_piece_and_each_event_a_chunk() -> None:
    shown = replace(EVENTS, pieces=[Chunk(0, b"data: 1\n\n"), Chunk(0, b""), Chunk(0, b"[]")])
    assert whole_response(shown, REQUEST) == (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        b"9\r\ndata: 1\n\n\r\n2\r\n[]\r\n0\r\n\r\n"
    )


def test_a_short_stream_for_http_1_0_has_a_length() -> None:
    assert whole_response(EVENTS, REQUEST._replace(version="1.0", keep_alive=False)) == (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\ncontent-length: 18\r\n\r\n"
        b"data: 1\n\ndata: 2\n\n"
    )


@pytest.mark.parametrize(
    "shown",
    [
        replace(PLAIN, status=None),
        replace(PLAIN, pause=1),
        replace(PLAIN, cut=True),
        replace(PLAIN, linger=True),
        replace(EVENTS, cut=True),
        replace(EVENTS, pieces=[Chunk(0, b"x"), Chunk(1, b"y")]),
        replace(EVENTS, pieces=[Chunk(0, b"x" * 70_000)]),
        replace(EVENTS, pieces=[Chunk(0, b"x")] * 300),
    ],
)
def test_an_answer_that_waits_breaks_off_or_is_a_long_stream_is_not_one_piece(shown: Playback) -> None:
    assert whole_response(shown, REQUEST) is None


# -- in parts ---------------------------------------------------------------------------------------------------------


def test_the_parts_of_a_response_are_whole_streamed_or_cut() -> None:
    streamed = Playback(429, [("retry-after", "7")], [Chunk(0, b"one"), Chunk(5, b"two")], pause=9, streamed=True)
    whole = replace(PLAIN, headers=[("content-length", "2")])
    assert b"".join(data for _, data in response_parts(whole)) == (
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok"
    )
    streaming = b"connection: close\r\ntransfer-encoding: chunked\r\n\r\n"
    assert list(response_parts(streamed)) == [
        (9, b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 7\r\n" + streaming),
        (0, b"3\r\none\r\n"),
        (5, b"3\r\ntwo\r\n"),
        (0, b"0\r\n\r\n"),
    ]
    cut = Playback(200, (), [Chunk(0, b"one")], streamed=True, cut=True)
    assert [data for _, data in response_parts(cut)][-1] == b"3\r\none\r\n"
    assert list(response_parts(Playback(None, (), (), pause=3, cut=True))) == [(3, b"")]


# -- over a connection ------------------------------------------------------------------------------------------------


class Writes(asyncio.Transport):
    """A transport that keeps what is written. `closing`: it is closed from the start."""

    def __init__(self, closing: bool = False) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.closing = closing

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True


def sender(transport: Writes, half_closed: bool = False, **request: Any) -> PlaybackSender:
    connection = HttpConnection(lambda request, connection: None, Connections())
    connection.transport = transport
    if half_closed:
        connection.half_closed.set()
    return PlaybackSender(connection, REQUEST._replace(**request))


def sent(shown: Playback, transport: Writes, **options: Any) -> bytes:
    async def playing() -> None:
        await asyncio.wait_for(sender(transport, **options).play(shown), 10)

    asyncio.run(playing())
    return b"".join(transport.written)


@pytest.mark.parametrize(("cut", "length"), [(False, b"18"), (True, b"19")])
def test_a_stream_for_http_1_0_has_a_length_and_one_byte_more_if_it_breaks_off(cut: bool, length: bytes) -> None:
    data = sent(replace(EVENTS, cut=cut), Writes(), version="1.0")
    assert b"\r\ncontent-length: " + length + b"\r\n" in data
    assert data.endswith(b"\r\n\r\ndata: 1\n\ndata: 2\n\n")


@pytest.mark.parametrize("cut", [False, True])
def test_each_event_is_a_chunk_and_a_stream_that_breaks_off_has_no_last_one(cut: bool) -> None:
    transport = Writes()
    sent(replace(EVENTS, cut=cut), transport)
    events = [b"9\r\ndata: 1\n\n\r\n", b"9\r\ndata: 2\n\n\r\n"]
    assert transport.written[1:] == (events if cut else [*events, b"0\r\n\r\n"])
    assert transport.closing is cut


def test_nothing_is_written_to_a_closing_connection_after_the_head() -> None:
    assert b"data" not in sent(EVENTS, Writes(closing=True))


@pytest.mark.parametrize(("pause", "received", "closed"), [(20, 2, False), (61_000, 1, True), (FOREVER_MS, 1, True)])
def test_a_half_closed_client_gets_events_that_are_due_soon(pause: float, received: int, closed: bool) -> None:
    transport = Writes()
    data = sent(replace(EVENTS, pieces=(PIECES[0], Chunk(pause, PIECES[1].data))), transport, half_closed=True)
    assert data.count(b"data: ") == received
    assert transport.closing is closed


def test_a_half_closed_client_gets_an_answer_that_is_decided_and_does_not_wait_for_a_decision() -> None:
    async def decided() -> str:
        return "answer"

    async def undecided() -> str:
        await asyncio.Event().wait()
        raise AssertionError

    async def holding() -> str:
        sending = sender(Writes(), half_closed=True)
        got = await sending.held(decided(), EVENTS)
        with pytest.raises(ClientGone):
            await asyncio.wait_for(sending.held(undecided(), EVENTS), 10)
        return got

    assert asyncio.run(holding()) == "answer"
