"""go-vcr's cassettes, by the versions of the library."""

from __future__ import annotations

import base64

import pytest
from tests.support.importing import reasons, taken

from wiretape.adapters.importers.go_vcr import milliseconds
from wiretape.adapters.importers.importing import container_of
from wiretape.adapters.importers.source import Source
from wiretape.model.http import Headers, JsonBody, StreamBody, TextBody

V1 = """\
---
version: 1
interactions:
- request:
    body: "a=1"
    form: {a: ["1"]}
    headers: {Content-Type: [application/x-www-form-urlencoded]}
    url: https://api.example.com/v1/x
    method: POST
  response:
    body: '{"ok":true}'
    headers: {Content-Type: [application/json]}
    status: 200 OK
    code: 200
    duration: ""
"""
V4 = """\
---
version: 2
interactions:
- id: 0
  request:
    proto: HTTP/1.1
    proto_major: 1
    proto_minor: 1
    content_length: 2
    host: api.example.com
    body: '{}'
    headers: {}
    url: https://api.example.com/v1/x
    method: POST
  response:
    proto: HTTP/2.0
    proto_major: 2
    transfer_encoding: [chunked]
    trailer: {X-End: [done]}
    content_length: -1
    uncompressed: true
    body: !!binary %s
    headers: {Content-Type: [text/event-stream], Content-Encoding: [gzip]}
    status: 200 OK
    code: 200
    duration: 1.25s
"""


def test_version_1() -> None:
    (exchange,) = taken(V1)
    assert exchange.request.body == TextBody("a=1")
    assert exchange.request.http is None
    assert exchange.response is not None
    assert exchange.response.status == 200
    assert exchange.response.body == JsonBody({"ok": True})
    assert exchange.response.headers_at == 0


def test_version_4() -> None:
    (exchange,) = taken(V4 % base64.b64encode(b"data: \xc3\xa9\n\n").decode())
    assert exchange.request.http == "2"
    assert exchange.response is not None
    assert exchange.response.body == StreamBody((b"data: \xc3\xa9\n\n",), (0,))
    assert exchange.response.headers_at == 1250
    assert exchange.ended_at == 1250
    assert exchange.response.trailers == Headers([("x-end", "done")])


def test_it_is_told_from_vcrpys() -> None:
    assert container_of(Source("x", V1.encode())) == "go-vcr"
    assert container_of(Source("x", V1.replace("url:", "uri:").encode())) == "vcr"


def test_a_status_that_is_only_text() -> None:
    (exchange,) = taken(V1.replace("    code: 200\n", "").replace("200 OK", "404 Not Found"))
    assert exchange.response is not None
    assert exchange.response.status == 404


def test_an_entry_without_a_response_is_named() -> None:
    text = V1 + "- request: {url: 'https://x.example.com/'}\n"
    assert reasons(text.replace("response:", "answer:"), "go-vcr")[1] == (
        "dir/file entry 2: is not an HTTP exchange (it holds request)"
    )


@pytest.mark.parametrize(
    ("duration", "expected"),
    [("", 0), (None, 0), ("1m2.5s", 62_500), ("350ms", 350), ("12µs", 0), ("1h0m0.5s", 3_600_500), (5_000_000, 5)],
)
def test_durations(duration: object, expected: int) -> None:
    assert milliseconds(duration) == expected
