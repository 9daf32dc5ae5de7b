"""Which answers are sent in one piece, and as what bytes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wiretape.adapters.whole_answers import whole_answer
from wiretape.replay.playback import Piece, Playback

PLAIN = Playback(200, [("content-type", "text/plain"), ("content-length", "2")], [Piece(0, b"ok")])


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
        replace(PLAIN, streamed=True),
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
