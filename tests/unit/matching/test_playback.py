"""Playbacks of outcomes."""

from __future__ import annotations

import gzip

import pytest
from tests.support.replaying import chat, exchange, live, response, session, stream, user

from wiretape.compare.difference import Tier
from wiretape.matching.playback import Playback, lost_body, playback
from wiretape.matching.values import Answer, Reference
from wiretape.model.http import BytesBody, Ended, Exchange, Headers, Response

FRAMES = ('data: {"a": 1}\n\n', 'data: {"b": 2}\n\n', "data: [DONE]\n\n")


def played(recorded: Exchange, pace: float = 0) -> Playback:
    return playback(Answer(1, Reference("t", 1, 1, "POST /"), recorded, Tier.EXACT), pace)


def test_a_plain_answer_has_a_right_content_length_and_no_content_encoding() -> None:
    made = response({"a": "ü"}, content_encoding="gzip", content_length="999", x_request_id="r1", connection="close")
    shown = played(exchange(1, chat(user("hi")), made))
    assert (shown.status, shown.streamed, shown.cut) == (200, False, False)
    assert list(shown.headers) == [
        ("content-type", "application/json"),
        ("x-request-id", "r1"),
        ("content-length", "10"),
    ]
    assert b"".join(piece.data for piece in shown.pieces) == '{"a":"ü"}'.encode()


def test_headers_that_were_redacted_are_not_sent() -> None:
    shown = played(exchange(1, chat(), response({}, set_cookie="[redacted]", x_id="[redacted:id:1]", x_ok="1")))
    assert [name for name, _ in shown.headers] == ["content-type", "x-ok", "content-length"]


def test_a_stream_is_sent_event_by_event_without_delay() -> None:
    shown = played(exchange(1, chat(), stream(*FRAMES, ms=[5, 20, 400])))
    assert [piece.data.decode() for piece in shown.pieces] == list(FRAMES)
    assert {piece.pause for piece in shown.pieces} == {0}
    assert shown.streamed
    assert "content-length" not in dict(shown.headers)


@pytest.mark.parametrize(("pace", "pauses"), [(1, [5, 15, 380]), (0.5, [2.5, 7.5, 190]), (2, [10, 30, 760])])
def test_a_stream_keeps_its_recorded_pace_scaled(pace: float, pauses: list[float]) -> None:
    shown = played(exchange(1, chat(), stream(*FRAMES, ms=[5, 20, 400])), pace)
    assert [piece.pause for piece in shown.pieces] == pauses


def test_the_time_to_the_headers_is_paced_too() -> None:
    recorded = exchange(2, chat(), response({}, at=1200))
    assert (played(recorded, 1).pause, played(recorded).pause) == (1000, 0)


@pytest.mark.parametrize(
    ("ended", "linger"),
    [
        (Ended.UPSTREAM_CLOSED, False),
        (Ended.CLIENT_CLOSED, True),
        (Ended.TIMEOUT, False),
        (Ended.RECORDER_STOPPED, False),
    ],
)
def test_a_cut_answer_is_cut_again(ended: Ended, linger: bool) -> None:
    shown = played(exchange(1, chat(), stream(*FRAMES[:2]), ended=ended))
    assert (len(shown.pieces), shown.cut, shown.linger) == (2, True, linger)
    plain = played(exchange(1, chat(), response({"a": 1}), ended=ended))
    assert (plain.cut, plain.streamed) == (True, True)
    assert "content-length" not in dict(plain.headers)


def test_an_unreachable_upstream_closes_the_connection() -> None:
    shown = played(exchange(1, chat(), None, ended=Ended.UPSTREAM_UNREACHABLE))
    assert (shown.status, shown.cut, list(shown.pieces)) == (None, True, [])


def test_answers_without_a_body_have_none() -> None:
    head = exchange(
        1, None, Response(200, Headers([("content-length", "42")])), method="HEAD", url="https://a.example/"
    )
    assert (list(played(head).headers), list(played(head).pieces)) == ([("content-length", "42")], [])
    empty = exchange(1, None, Response(204, Headers()), method="DELETE", url="https://a.example/")
    assert (list(played(empty).headers), list(played(empty).pieces)) == ([], [])


def test_a_lost_body_is_noticed_and_an_empty_one_is_not() -> None:
    headers = Headers([("content-length", "42")])
    assert lost_body(exchange(1, chat(), Response(200, headers))) == 42
    assert lost_body(exchange(1, chat(), Response(200, headers, body=BytesBody(b"x")))) == 0
    assert lost_body(exchange(1, chat(), Response(200, Headers([("content-length", "0")])))) == 0
    assert lost_body(exchange(1, chat(), Response(200, headers), ended=Ended.UPSTREAM_CLOSED)) == 0


def test_misses_are_400_strays_404_and_both_forbid_retries() -> None:
    replay = session(exchange(1, chat(user("hi")), "one"))
    miss = playback(replay.answer(live(chat(user("no")))))
    stray = playback(replay.answer(live(None, method="GET", url="https://a.example/x")))
    assert (miss.status, stray.status) == (400, 404)
    assert dict(miss.headers)["x-should-retry"] == dict(stray.headers)["x-should-retry"] == "false"
    assert b"GET a.example/x is not on the tape" in stray.pieces[0].data


def test_a_body_that_was_recorded_encoded_is_sent_with_its_encoding() -> None:
    bomb = gzip.compress(bytes(66 << 20), 9)
    for encoding, data in (("gzip", bomb), ("x-unheard-of", b"\xff\x00")):
        made = Response(200, Headers([("content-encoding", encoding)]), 0, BytesBody(data))
        shown = played(exchange(1, chat(user("hi")), made))
        assert ("content-encoding", encoding) in shown.headers
        assert b"".join(piece.data for piece in shown.pieces) == data
    archive = Response(200, Headers([("content-encoding", "gzip")]), 0, BytesBody(gzip.compress(b"an archive")))
    assert "content-encoding" not in dict(played(exchange(1, chat(user("hi")), archive)).headers)
