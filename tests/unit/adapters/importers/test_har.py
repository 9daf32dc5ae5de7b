"""HAR files: of browsers, of mitmproxy, of Polly.js; and our own, there and back."""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.importing import har_entry, har_file, outcomes, reasons, taken

from wiretape.adapters.exporters.har import har
from wiretape.adapters.importers.importing import ImportedExchange
from wiretape.adapters.importers.write_imported import place, write_imported
from wiretape.model.http import (
    Body,
    BytesBody,
    Close,
    Ended,
    Exchange,
    Headers,
    JsonBody,
    Request,
    Response,
    StreamBody,
    TextBody,
    WsMessage,
    body_bytes,
)
from wiretape.tape.format.bodies import plain_body, response_body
from wiretape.tape.reading.reader import read_tape
from wiretape.tape.redaction import Redactor

STARTED = datetime(2026, 1, 2, 3, 4, 5, 678000, UTC)
STREAM = {"Content-Type": "text/event-stream"}


def body(exchange: Exchange) -> Body | None:
    assert exchange.response is not None
    return exchange.response.body


def test_a_browsers_entry() -> None:
    (found,) = outcomes(har_file(har_entry({"size": 7, "mimeType": "application/json", "text": '{"b":2}'})))
    assert isinstance(found, ImportedExchange)
    exchange = found.exchange
    assert found.started == STARTED.timestamp()
    assert exchange.request.headers == Headers([("content-type", "application/json")])  # HTTP/2's own are no headers
    assert exchange.request.http == "2"
    assert exchange.request.body == JsonBody({"a": 1}, "spaced")
    assert body(exchange) == JsonBody({"b": 2})
    assert exchange.response is not None
    assert exchange.response.headers_at == 100
    assert exchange.ended_at == 110


def test_bodies_in_base64_are_decoded() -> None:
    text = base64.b64encode(b"data: \xe4\xbd\xa0\n\n").decode()
    (exchange,) = taken(har_file(har_entry({"size": 1, "text": text, "encoding": "base64"}, headers=STREAM)))
    assert body(exchange) == StreamBody((b"data: \xe4\xbd\xa0\n\n",), (0,))


def test_a_body_of_which_only_the_size_is_there_is_refused_and_not_served_empty() -> None:
    assert reasons(har_file(har_entry({"size": 512, "mimeType": "text/plain"}))) == [
        "dir/file entry 1: its response had 512 bytes, which the file does not contain"
    ]
    (exchange,) = taken(har_file(har_entry({"size": 0}, status=204)))
    assert body(exchange) is None


def test_websocket_messages() -> None:
    zero = STARTED.timestamp()
    messages = [
        {"type": "send", "time": zero + 0.2, "opcode": 1, "data": '{"x": 1}'},
        {"type": "receive", "time": zero + 0.25, "opcode": 2, "data": "AAE="},
        {"type": "receive", "data": "text"},
    ]
    entry = har_entry(url="wss://api.example.com/live", status=101, post={}, _webSocketMessages=messages)
    (exchange,) = taken(har_file(entry))
    assert [(m.at, m.sender, m.body) for m in exchange.messages] == [
        (200, "client", JsonBody({"x": 1}, "spaced")),
        (250, "server", BytesBody(b"\x00\x01")),
        (250, "server", TextBody("text")),
    ]
    assert exchange.ended_at == 250


def test_events_that_a_browser_kept_beside_the_body() -> None:
    events = [
        {"time": 1.0, "eventName": "message", "eventId": "", "data": "one\ntwo"},
        {"time": 2.0, "eventName": "delta", "eventId": "7", "data": "{}"},
    ]
    (exchange,) = taken(har_file(har_entry({"size": 40}, headers=STREAM, _eventSourceMessages=events)))
    assert body(exchange) == StreamBody((b"data: one\ndata: two\n\n", b"event: delta\nid: 7\ndata: {}\n\n"), (0, 0))


def test_mitmproxys_latin_1_is_undone() -> None:
    """mitmproxy shows UTF-8 without a stated charset as Latin-1."""
    shown = "data: 你好\n\n".encode().decode("latin-1")
    entry = har_entry({"size": 1, "text": shown}, headers=STREAM)
    (exchange,) = taken(har_file(entry, creator="mitmproxy"))
    assert body_bytes(body(exchange)) == "data: 你好\n\n".encode()
    (other,) = taken(har_file(entry))
    assert body_bytes(body(other)) == shown.encode()


@pytest.mark.parametrize(("how", "marks"), [("base64", {"encoding": "base64"}), ("hex", {"_isBinary": True})])
def test_pollys_chunks_are_joined_and_unpacked(how: str, marks: dict[str, Any]) -> None:
    packed = gzip.compress(b'{"a":1}')
    chunks = [packed[:9], packed[9:]]
    text = json.dumps([base64.b64encode(c).decode() if how == "base64" else c.hex() for c in chunks])
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    entry = har_entry({"size": 9, "text": text, **marks}, headers=headers, _order=0, _id="x")
    (exchange,) = taken(har_file(entry, creator="Polly.JS"))
    assert body(exchange) == JsonBody({"a": 1})
    wrapped = json.dumps({"My-Recording_1": json.loads(har_file(entry))})  # as it lies in a browser's storage
    assert taken(wrapped) == [exchange]


def test_pollys_yaml() -> None:
    """Its YAML may have the request's JSON as a value."""
    packed = base64.b64encode(gzip.compress(b"ok")).decode()
    text = f"""\
log:
  _recordingName: auth
  creator: {{name: Polly.JS, version: 6.0.6}}
  entries:
    - _order: 0
      request:
        headers:
          - _fromType: array
            name: content-type
            value: application/json
        httpVersion: HTTP/1.1
        method: POST
        postData: {{mimeType: application/json, params: [], textJSON: {{model: m, topK: -1}}}}
        queryString: [{{name: q, value: null}}]
        url: https://a.example.com/x?q
      response:
        content: {{encoding: base64, size: 9, text: '["{packed}"]'}}
        headers: [{{name: content-encoding, value: gzip}}]
        status: 200
      startedDateTime: 2024-09-25T10:06:29.561Z
      time: 0
      timings: {{blocked: -1, send: 0, wait: 7, receive: 0}}
"""
    (found,) = outcomes(text)
    assert isinstance(found, ImportedExchange)
    assert found.container == "HAR"
    assert found.started == datetime(2024, 9, 25, 10, 6, 29, 561000, UTC).timestamp()
    assert found.exchange.request.body == JsonBody({"model": "m", "topK": -1}, exact=False)
    assert body(found.exchange) == TextBody("ok")
    assert found.exchange.ended_at == 7


def test_entries_that_got_no_response() -> None:
    def failed(error: str) -> Exchange:
        entry = har_entry(status=0)
        entry["response"]["_error"] = error
        (exchange,) = taken(har_file(entry))
        assert exchange.response is None
        return exchange

    assert failed("net::ERR_CONNECTION_REFUSED").ended is Ended.UPSTREAM_UNREACHABLE
    assert failed("net::ERR_ABORTED").ended is Ended.CLIENT_CLOSED


def test_what_is_no_http_is_named() -> None:
    assert reasons(har_file(har_entry(url="data:image/png;base64,AAAA"))) == [
        "dir/file entry 1: is not an HTTP exchange (data:)"
    ]
    assert reasons('{"log": {}}', "har") == ["dir/file: is not a HAR: it has no log with entries"]


def test_forms_without_their_text() -> None:
    posted = {"mimeType": "application/x-www-form-urlencoded", "params": [{"name": "a", "value": "1 2"}]}
    (exchange,) = taken(har_file(har_entry(post=posted)))
    assert exchange.request.body == TextBody("a=1+2")


# -- there and back ----------------------------------------------------------------------------------------------


def there_and_back(*exchanges: Exchange) -> list[Exchange]:
    text = b"".join(har(exchanges, STARTED, ""))
    orjson.loads(text)
    found = outcomes(text)
    assert all(isinstance(one, ImportedExchange) for one in found), found
    return list(place([one for one in found if isinstance(one, ImportedExchange)], STARTED).exchanges)


names = st.sampled_from(["content-type", "x-a", "accept"])
kinds = st.sampled_from(["application/json", "text/event-stream", "text/plain; charset=utf-8", "image/png", ""])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=8,
)
raws = (
    st.binary(max_size=40)
    | st.text(max_size=40).map(lambda text: text.encode("utf-8", "replace"))
    | json_values.map(orjson.dumps)
    | st.lists(json_values, min_size=1, max_size=3).map(
        lambda v: b"".join(b"data: %b\n\n" % orjson.dumps(x) for x in v)
    )
).filter(lambda raw: not raw.startswith(b"\x1f\x8b"))


@st.composite
def exchanges(draw: st.DrawFn) -> list[Exchange]:
    at, made = 0, []
    for number in range(1, draw(st.integers(1, 4)) + 1):
        kind = draw(kinds)
        request = Request(
            draw(st.sampled_from(["POST", "GET"])),
            draw(
                st.sampled_from(
                    ["https://a.example.com/v1/x", "unknown:", "unknown:a b.json", "http://127.0.0.1:8080/y?q=%20é&r"]
                )
            ),
            Headers([("content-type", "application/json"), ("x-b", "1"), ("x-b", "2")]),
            plain_body(draw(raws)),
            draw(st.sampled_from(["1.1", "2"])),
        )
        wait, receive = draw(st.integers(0, 9)), draw(st.integers(0, 9))
        ended = draw(st.sampled_from(Ended))
        if draw(st.booleans()):
            content = response_body([(0, raw)], kind) if (raw := draw(raws)) else None
            if isinstance(content, StreamBody):
                content = replace(content, ms=tuple(range(len(content.frames))))
            trailers = draw(st.none() | st.just(Headers([("x-end", "1")])))
            headers = Headers([("content-type", kind)] if kind else [])
            response = Response(draw(st.sampled_from([200, 429, 599])), headers, at + wait, content, trailers)
            made.append(Exchange(number, at, request, response, ended, at + wait + receive))
        else:
            made.append(Exchange(number, at, request, None, ended, at + wait + receive))
        # Two that take no time and start at once are pulled apart: a HAR's clock might be too coarse.
        at += draw(st.integers(1, 50))
    return made


@pytest.mark.slow
@given(exchanges())
def test_exchanges_come_back_from_har_as_they_were(whole: list[Exchange]) -> None:
    assert there_and_back(*whole) == whole


def test_a_text_that_starts_like_gzip_by_one_character_stays_text() -> None:
    request = Request("POST", "https://a.example.com/v1/x", Headers(), TextBody("\x1f\x80"), "1.1")
    whole = Exchange(1, 0, request, Response(200, Headers(), 1), Ended.COMPLETE, 2)
    assert there_and_back(whole) == [whole]


def test_websockets_come_back_from_har_as_they_were() -> None:
    request = Request("GET", "wss://a.example.com/live", Headers([("upgrade", "websocket")]), None, "1.1")
    messages = (
        WsMessage(12, "client", JsonBody({"a": [1]})),
        WsMessage(13, "server", BytesBody(b"\xff")),
        WsMessage(400_000_000, "server", TextBody("你好")),
    )
    close = Close(1000, "bye", "client")
    whole = Exchange(1, 0, request, Response(101, Headers(), 3), Ended.COMPLETE, 400_000_001, messages, close)
    assert there_and_back(whole) == [replace(whole, ended_at=400_000_001)]
    broken = replace(whole, ended=Ended.UPSTREAM_CLOSED, close=None)
    assert there_and_back(broken) == [broken]


def test_an_exchange_that_did_not_complete_says_so() -> None:
    cut = Exchange(1, 0, Request("GET", "https://a.example.com/"), Response(200), Ended.CLIENT_CLOSED, 5)
    (entry,) = orjson.loads(b"".join(har([cut], STARTED, "note")))["log"]["entries"]
    assert entry["comment"] == "this exchange did not complete: client_closed"
    assert entry["startedDateTime"] == "2026-01-02T03:04:05.678000+00:00"
    assert entry["timings"]["receive"] == 5


def test_what_wiretape_exported_says_again_what_was_redacted(tmp_path: Path) -> None:
    key = {"Authorization": "Bearer [redacted:authorization:1]", "X-Odd": "[redacted]"}
    found = outcomes(har_file(har_entry(url="https://api.example.com/v1?key=[redacted:key:1]", headers=key)))
    out = tmp_path / "again.tape"
    write_imported(out, [one for one in found if isinstance(one, ImportedExchange)], STARTED, Redactor(), None)
    assert read_tape(out).header.redacted == ["authorization", "header", "key"]
