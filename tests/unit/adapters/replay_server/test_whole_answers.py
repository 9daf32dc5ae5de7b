"""Which answers are sent in one piece, and as what bytes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wiretape.adapters.replay_server.whole_answers import whole_answer
from wiretape.matching.playback import Chunk, Playback

PLAIN = Playback(200, [("content-type", "text/plain"), ("content-length", "2")], [Chunk(0, b"ok")])


def with_header(name: str, value: str) -> Playback:
    return replace(PLAIN, headers=[(name, value), *PLAIN.headers])


def test_a_body_that_is_known_is_one_piece_with_its_head() -> None:
    assert whole_answer(PLAIN) == b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nok"
    assert whole_answer(replace(PLAIN, status=529)) == (
        b"HTTP/1.1 529 \r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nok"
    )


@pytest.mark.parametrize(
    "shown",
    [
        replace(PLAIN, status=None),
        replace(PLAIN, pause=1),
        replace(PLAIN, cut=True),
        replace(PLAIN, linger=True),
        replace(PLAIN, pieces=()),
        replace(PLAIN, headers=[]),
        replace(PLAIN, headers=[("content-type", "text/plain")]),
        with_header("x", "one\r\ninjected: two"),
        with_header("x", "one\ntwo"),
        with_header("not a token", "one"),
        with_header("", "one"),
        with_header("x", "é"),
    ],
)
def test_what_waits_breaks_off_or_is_odd_takes_the_long_way(shown: Playback) -> None:
    assert whole_answer(shown) is None


EVENTS = Playback(
    200, [("content-type", "text/event-stream")], [Chunk(0, b"data: 1\n\n"), Chunk(0, b"[]")], streamed=True
)


def test_a_short_stream_is_one_piece_and_each_event_a_chunk() -> None:
    assert whole_answer(EVENTS) == (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        b"9\r\ndata: 1\n\n\r\n2\r\n[]\r\n0\r\n\r\n"
    )


def test_what_is_empty_in_a_stream_is_no_chunk_since_that_would_end_it() -> None:
    sent = whole_answer(replace(EVENTS, pieces=[Chunk(0, b""), Chunk(0, b"x")]))
    assert sent is not None
    assert sent.endswith(b"\r\n\r\n1\r\nx\r\n0\r\n\r\n")


@pytest.mark.parametrize(
    "shown",
    [
        replace(EVENTS, cut=True),
        replace(EVENTS, pieces=[Chunk(0, b"x"), Chunk(1, b"y")]),
        replace(EVENTS, pieces=[Chunk(0, b"x" * 70_000)]),
        replace(EVENTS, pieces=[Chunk(0, b"x")] * 300),
        replace(EVENTS, status=204),
    ],
)
def test_a_stream_that_waits_breaks_off_or_is_long_takes_the_long_way(shown: Playback) -> None:
    assert whole_answer(shown) is None
