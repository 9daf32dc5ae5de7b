"""HTTP/1.1 as bytes: taps tell the same story however the bytes are cut, and answers are written as they are read."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wiretape.adapters.inprocess.sockets.taps import ExchangeTap
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


def tap(method: str = "POST") -> tuple[ExchangeTap, Story]:
    story: Any = Story()

    def begin(headers: list[tuple[str, str]]) -> Any:
        story.told.append(dict(headers))
        return story

    return ExchangeTap(method, begin), story


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
