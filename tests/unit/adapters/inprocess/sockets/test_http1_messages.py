"""HTTP/1.1 as bytes: taps tell the same story however the bytes are cut, and answers are written as they are read."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wiretape.adapters.inprocess.sockets.http1_messages import RequestReader, Tap, answer
from wiretape.matching.playback import Chunk, Playback
from wiretape.model.http import Ended


class Story:
    """Stands for an exchange that is being recorded."""

    def __init__(self) -> None:
        self.sent_bytes = b""
        self.received_bytes = b""
        self.told: list[Any] = []

    def sent(self, data: bytes) -> None:
        self.sent_bytes += data

    def received(self, data: bytes) -> None:
        self.received_bytes += data

    def sent_all(self) -> None:
        if "sent" not in self.told:
            self.told.append("sent")

    def response(self, status: int, headers: list[tuple[str, str]]) -> None:
        self.told.append((status, dict(headers)))

    def end(self, ended: Ended = Ended.COMPLETE) -> None:
        self.told.append(ended)

    def hung_up(self) -> None:
        self.told.append("hung up")

    def failed(self, error: BaseException) -> None:
        self.told.append(type(error))


def tap(method: str = "POST") -> tuple[Tap, Story]:
    story: Any = Story()

    def begin(headers: list[tuple[str, str]]) -> Any:
        story.told.append(dict(headers))
        return story

    return Tap(method, begin), story


REQUEST = b"POST /x HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
RESPONSE = (
    b"HTTP/1.1 100 Continue\r\n\r\n"
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\none \r\n3\r\ntwo\r\n0\r\nx-trailer: 1\r\n\r\n"
)


@given(st.lists(st.integers(0, 150), max_size=10))
def test_cutting_never_changes_what_is_told(cuts: list[int]) -> None:
    made, story = tap()
    for feed, data in ((made.sent, REQUEST), (made.received, RESPONSE)):
        at = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
        for start, end in itertools.pairwise(at):
            if start < end:
                feed(data[start:end])
    assert (story.sent_bytes, story.received_bytes) == (b"abcde", b"one two")
    assert story.told == [
        {"host": "a", "transfer-encoding": "chunked"},
        "sent",
        (200, {"transfer-encoding": "chunked"}),
        Ended.COMPLETE,
    ]


@pytest.mark.parametrize(
    ("method", "response", "body", "ended"),
    [
        ("GET", b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc", b"abc", Ended.COMPLETE),
        ("GET", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc", b"abc", Ended.UPSTREAM_CLOSED),
        ("GET", b"HTTP/1.1 200 OK\r\n\r\nuntil the end", b"until the end", Ended.COMPLETE),
        ("HEAD", b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n", b"", Ended.COMPLETE),
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\n", b"", Ended.COMPLETE),
        ("GET", b"", b"", Ended.UPSTREAM_CLOSED),
        ("GET", b"no HTTP at all\r\n\r\n", b"", Ended.RECORDER_STOPPED),
    ],
)
def test_how_an_exchange_ended(method: str, response: bytes, body: bytes, ended: Ended) -> None:
    made, story = tap(method)
    made.sent(f"{method} /x HTTP/1.1\r\nhost: a\r\n\r\n".encode())
    made.received(response)
    made.eof()
    assert (story.received_bytes, story.told[-1]) == (body, ended)
    assert story.told.count(ended) == 1


def test_what_could_not_be_sent_is_told_all_the_same() -> None:
    made, story = tap()
    made.failed(ConnectionRefusedError(), [("content-type", "text/plain")], "body")
    assert (story.told, story.sent_bytes) == ([{"content-type": "text/plain"}, ConnectionRefusedError], b"body")


def test_an_upgrade_leaves_what_follows_to_its_protocol() -> None:
    reader = RequestReader(lambda _: None)
    head = b"GET /ws HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n"
    assert reader.feed(head + b"\x81\x00") == b"\x81\x00"
    assert (reader.complete, reader.method) == (True, "GET")


def test_answers_are_written_whole_streamed_or_cut() -> None:
    whole = Playback(200, [("content-length", "2")], [Chunk(0, b"ok")])
    streamed = Playback(429, [("retry-after", "7")], [Chunk(0, b"one"), Chunk(5, b"two")], pause=9, streamed=True)
    assert b"".join(data for _, data in answer(whole)) == (
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok"
    )
    streaming = b"connection: close\r\ntransfer-encoding: chunked\r\n\r\n"
    assert list(answer(streamed)) == [
        (9, b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 7\r\n" + streaming),
        (0, b"3\r\none\r\n"),
        (5, b"3\r\ntwo\r\n"),
        (0, b"0\r\n\r\n"),
    ]
    cut = Playback(200, (), [Chunk(0, b"one")], streamed=True, cut=True)
    assert [data for _, data in answer(cut)][-1] == b"3\r\none\r\n"
    assert list(answer(Playback(None, (), (), pause=3, cut=True))) == [(3, b"")]
