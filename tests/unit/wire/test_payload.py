"""The kind of a body is determined by its bytes."""

from __future__ import annotations

import pytest

from wiretape.model.http import Body, BytesBody, Headers, JsonBody, Response, StreamBody, TextBody
from wiretape.wire.payload import Event, EventPayload, JsonPayload, Payload, TextPayload, read_payload


def read(body: Body | None, content_type: str = "") -> Payload:
    return read_payload(Response(200, Headers([("content-type", content_type)]), 0, body))


@pytest.mark.parametrize(
    "body",
    [
        JsonBody({"a": 1}),
        TextBody('{"a":1}'),
        TextBody('\n   \n\n {"a":1}\n'),
        BytesBody(b'\xef\xbb\xbf{"a":1}'),
        StreamBody((b"\n  ", b'{"a"', b":1}"), (1, 2, 3)),
        TextBody('{\n  "a": 1\n}'),
    ],
)
def test_json(body: Body) -> None:
    assert read(body, "text/event-stream") == JsonPayload({"a": 1})


@pytest.mark.parametrize(
    "start", ["data: 1\n\n", ": note\n\ndata: 1\n\n", "event: e\ndata: 1\n\n", "\n\nid: 3\ndata: 1\n\n"]
)
def test_events(start: str) -> None:
    payload = read(TextBody(start), "application/json")
    assert isinstance(payload, EventPayload)
    assert [e.value for e in payload.events] == [1]


def test_events_have_the_time_of_the_frame_that_completes_them() -> None:
    payload = read(StreamBody((b"data: 1\n", b"\ndata: 2\n\n", b"data: 3"), (5, 7, 9)))
    assert payload == EventPayload([Event("", 1, 7), Event("", 2, 7), Event("", 3, 9)])


def test_done_is_not_an_event_and_torn_data_is_kept() -> None:
    payload = read(TextBody('data: {"a":1}\n\ndata: [DONE]\n\ndata: {"torn'))
    assert payload == EventPayload([Event("", {"a": 1}, None)], True, ('{"torn',))


def test_lines_of_json() -> None:
    payload = read(StreamBody((b'{"a":1}\n', b'{"a":2}\n'), (1, 2)))
    assert payload == EventPayload([Event("", {"a": 1}, 1), Event("", {"a": 2}, 2)])


@pytest.mark.parametrize("body", [TextBody("<html>"), TextBody(""), None, TextBody('{"torn'), BytesBody(b"\xff\xfe")])
def test_text(body: Body | None) -> None:
    assert isinstance(read(body), TextPayload)


def test_missing_times_are_unknown() -> None:
    payload = read(StreamBody((b"data: 1\n\n", b"data: 2\n\n"), (4,)))
    assert payload == EventPayload([Event("", 1, 4), Event("", 2, None)])
