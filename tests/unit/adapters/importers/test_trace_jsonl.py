"""Traces of one {request, response} a line, in the spellings that tools have for them."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from tests.support.importing import outcomes, taken

from wiretape.adapters.importers.importing import ImportedExchange, RefusedEntry
from wiretape.model.http import Ended, Exchange, Headers, JsonBody, StreamBody, TextBody

URL = "https://api.example.com/v1/messages"


def lines(*entries: Any) -> str:
    return "".join(json.dumps(entry) + "\n" for entry in entries)


def one(request: Any, response: Any, **more: Any) -> Exchange:
    (exchange,) = taken(lines({"request": request, "response": response, **more}))
    return exchange


def test_messages_of_both_sides() -> None:
    request = {"timestamp": 1000.5, "method": "post", "url": URL, "headers": {"a": "1"}, "body": {"model": "m"}}
    response = {"timestamp": 1002.0, "status_code": 429, "headers": [["b", "2"]], "body_raw": '{"x": 1}'}
    (found,) = outcomes(lines({"request": request, "response": response, "logged_at": "2026-01-01"}))
    assert isinstance(found, ImportedExchange)
    assert found.started == 1000.5
    exchange = found.exchange
    assert (exchange.request.method, exchange.request.url) == ("POST", URL)
    assert exchange.request.body == JsonBody({"model": "m"}, exact=False)
    assert exchange.response is not None
    assert (exchange.response.status, exchange.response.headers) == (429, Headers([("b", "2")]))
    assert exchange.response.body == JsonBody({"x": 1}, "spaced")
    assert exchange.ended_at == 1500


def test_bare_bodies() -> None:
    exchange = one({"model": "m", "messages": []}, {"id": "1", "choices": [], "status": "completed"})
    assert (exchange.request.method, exchange.request.url) == ("POST", "unknown:")
    assert exchange.request.body == JsonBody({"model": "m", "messages": []}, exact=False)
    assert exchange.response is not None
    assert exchange.response.status == 200
    assert exchange.response.body == JsonBody({"id": "1", "choices": [], "status": "completed"}, exact=False)


@pytest.mark.parametrize(
    ("events", "frames"),
    [
        (
            [{"event": "delta", "data": {"a": 1}}, {"data": "[DONE]"}],
            (b'event: delta\ndata: {"a":1}\n\n', b"data: [DONE]\n\n"),
        ),
        ([{"type": "message_start"}], (b'data: {"type":"message_start"}\n\n',)),
        (["data: 1\n\n", "data: 2\n\n"], (b"data: 1\n\n", b"data: 2\n\n")),
        (['{"a":1}', "[DONE]"], (b'data: {"a":1}\n\n', b"data: [DONE]\n\n")),
        (["x"], (b"data: x\n\n",)),
    ],
)
def test_streams_as_lists(events: list[Any], frames: tuple[bytes, ...]) -> None:
    bare = one({"model": "m"}, events)
    named = one({"url": URL}, {"status": 200, "headers": {"content-type": "text/event-stream"}, "sse_events": events})
    for exchange in (bare, named):
        assert exchange.response is not None
        assert exchange.response.body == StreamBody(frames, (0,) * len(frames))


def test_ndjson_as_a_list() -> None:
    exchange = one({"model": "m"}, [{"model": "m", "done": False}, {"model": "m", "done": True}])
    assert exchange.response is not None
    assert exchange.response.body == StreamBody(
        (b'{"model":"m","done":false}\n', b'{"model":"m","done":true}\n'), (0, 0)
    )


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ({"path": "/v1/x", "headers": {"host": "a.example.com"}}, "https://a.example.com/v1/x"),
        ({"path": "/v1/x", "headers": {}}, "unknown:/v1/x"),
        ({"path": "/v1/x", "base_url": "http://127.0.0.1:1/"}, "http://127.0.0.1:1/v1/x"),
        ({"uri": URL}, URL),
    ],
)
def test_urls(request_: dict[str, Any], expected: str) -> None:
    assert one(request_, {"status": 200}).request.url == expected


def test_bodies_in_base64_and_as_text() -> None:
    coded = base64.b64encode(b'{"a":1}').decode()
    exchange = one({"url": URL, "method": "POST", "body": "a=1"}, {"status": 200, "body_base64": coded})
    assert exchange.request.body == TextBody("a=1")
    assert exchange.response is not None
    assert exchange.response.body == JsonBody({"a": 1})


def test_a_request_that_got_no_answer() -> None:
    exchange = one({"url": URL}, None)
    assert exchange.response is None
    assert exchange.ended is Ended.RECORDER_STOPPED


@pytest.mark.parametrize(
    ("entry", "started", "length"),
    [
        ({"timestamp": 1767225600000}, 1767225600.0, 0),
        ({"timestamp": "2026-01-01T00:00:00Z", "duration_ms": 12.4}, 1767225600.0, 12),
        ({"ts": "yesterday"}, None, 0),
    ],
)
def test_times(entry: dict[str, Any], started: float | None, length: int) -> None:
    (found,) = outcomes(lines({**entry, "request": {"url": URL}, "response": {"status": 200}}))
    assert isinstance(found, ImportedExchange)
    assert found.started == started
    assert found.exchange.ended_at == length


def test_documents_and_lists_of_them() -> None:
    entry = {"request": {"url": URL}, "response": {"status": 200}}
    assert len(taken(json.dumps(entry, indent=2))) == 1
    assert len(taken(json.dumps([entry, entry], indent=2))) == 2
    assert len(taken(json.dumps([entry, entry]))) == 2
    assert len(taken(json.dumps(entry))) == 1


def test_lines_that_are_none_are_named_and_the_rest_taken() -> None:
    good = {"request": {"url": URL}, "response": {"status": 200}}
    found = outcomes(
        lines(good) + "\n" + '{"torn": \n' + lines({"response": {}}, good, {"request": None, "response": 1})
    )
    assert [(one.entry, one.reason[:20]) for one in found if isinstance(one, RefusedEntry)] == [
        (3, "is not JSON: Expecti"),
        (4, "has no request"),
        (6, "has no request"),
    ]
    assert [one.entry for one in found if isinstance(one, ImportedExchange)] == [1, 5]


def test_the_events_of_a_websocket_are_its_messages() -> None:
    event = {"type": "response.completed", "response": {"id": "r"}}
    asked = {"method": "WEBSOCKET", "path": "/v1/responses", "body": {"type": "response.create", "input": "hi"}}
    exchange = one(asked, {"status": 101, "headers": {}, "body": None, "ws_events": [event]})
    assert (exchange.request.method, exchange.request.url) == ("GET", "unknown:/v1/responses")
    assert [(m.sender, m.body) for m in exchange.messages] == [
        ("client", JsonBody({"type": "response.create", "input": "hi"}, exact=False)),
        ("server", JsonBody(event, exact=False)),
    ]


def test_objects_of_an_sdk_are_unwrapped() -> None:
    def wrapped(data: Any) -> dict[str, Any]:
        return {"__type__": "openai.types.Chat", "__data__": data}

    exchange = one({"method": "POST", "url": URL, "body": {}}, {"body": wrapped({"id": "c", "x": wrapped([1])})})
    assert exchange.response is not None
    assert exchange.response.body == JsonBody({"id": "c", "x": [1]}, exact=False)
