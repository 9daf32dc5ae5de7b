"""Bodies of responses that somebody kept without their requests."""

from __future__ import annotations

import json

import pytest
from tests.support.importing import reasons, taken

from wiretape.model.http import JsonBody, StreamBody

CHUNKS = b'{"type":"message_start","message":{}}\n{"type":"message_stop"}\n'
COMPLETION = {"id": "c", "object": "chat.completion", "choices": [{"index": 0, "message": {"role": "assistant"}}]}


def test_a_body_of_json() -> None:
    (exchange,) = taken(json.dumps(COMPLETION, indent=2), name="fixtures/text.json")
    assert (exchange.request.method, exchange.request.url) == ("POST", "unknown:text.json")
    assert exchange.request.body is None
    assert exchange.response is not None
    assert exchange.response.status == 200
    assert exchange.response.body == JsonBody(COMPLETION, "indent2")


def test_events_a_line() -> None:
    (exchange,) = taken(CHUNKS)
    assert exchange.response is not None
    assert exchange.response.body == StreamBody(
        (b'data: {"type":"message_start","message":{}}\n\n', b'data: {"type":"message_stop"}\n\n'), (0, 0)
    )


def test_a_line_that_is_torn_costs_only_itself() -> None:
    (exchange,) = taken(b'{"type":"mess\nage_start"}\n' + CHUNKS * 2)
    assert exchange.response is not None
    assert isinstance(exchange.response.body, StreamBody)
    assert exchange.response.body.frames[0] == b'data: {"type":"mess\n\n'
    assert len(exchange.response.body.frames) == 6


def test_a_stream_as_it_came() -> None:
    raw = b'event: message_start\ndata: {"type":"message_start","message":{}}\n\n: ping\n\n'
    (exchange,) = taken(raw)
    assert exchange.response is not None
    assert exchange.response.body == StreamBody((raw[:-8], b": ping\n\n"), (0, 0))


def test_ndjson_stays_what_it_is() -> None:
    raw = b'{"model":"m","message":{"content":"a"},"done":false}\n{"model":"m","done":true}\n'
    (exchange,) = taken(raw, "body")
    assert exchange.response is not None
    assert exchange.response.headers["content-type"] == "application/x-ndjson"
    assert exchange.response.body == StreamBody(tuple(line + b"\n" for line in raw.splitlines()), (0, 0))


def test_an_error_states_its_status() -> None:
    (exchange,) = taken('{"error": {"code": 429, "message": "slow down"}}', "body")
    assert exchange.response is not None
    assert exchange.response.status == 429


@pytest.mark.parametrize("text", ['{"name": "package"}', "[1, 2]", "data: 1\n\n"])
def test_what_no_format_knows_is_taken_only_when_asked_for(text: str) -> None:
    assert reasons(text) == [
        "dir/file: is not a recording in a known format; --format body imports it as the body of a response"
    ]
    assert len(taken(text, "body")) == 1


def test_what_is_no_body() -> None:
    assert reasons("hello", "body") == ["dir/file entry 1: is neither JSON nor a stream"]
