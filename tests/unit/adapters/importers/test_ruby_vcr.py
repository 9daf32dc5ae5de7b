"""Cassettes of Ruby's VCR."""

from __future__ import annotations

import base64
import gzip
import json

from tests.support.importing import outcomes, taken

from wiretape.adapters.importers.importing import ImportedExchange
from wiretape.model.http import BytesBody, JsonBody

CASSETTE = """\
---
http_interactions:
- request:
    method: post
    uri: https://api.example.com/v1/messages
    body:
      encoding: UTF-8
      string: '{"model":"m"}'
    headers:
      Content-Type:
      - application/json
  response:
    status:
      code: 200
      message: OK
    headers:
      Content-Encoding: [gzip]
    body:
      encoding: ASCII-8BIT
      %s
    http_version: null
  recorded_at: Tue, 01 Nov 2011 04:58:44 GMT
recorded_with: VCR 6.1.0
"""
PACKED = base64.b64encode(gzip.compress(b'{"a":1}')).decode()


def test_ruby_writes_binary_with_its_own_tag() -> None:
    for body in (f"string: !binary |-\n        {PACKED}", f"base64_string: {PACKED}"):
        (found,) = outcomes(CASSETTE % body)
        assert isinstance(found, ImportedExchange)
        assert found.container == "Ruby VCR"
        assert found.started == 1320123524
        assert found.exchange.request.method == "POST"
        assert found.exchange.request.body == JsonBody({"model": "m"})
        assert found.exchange.response is not None
        assert found.exchange.response.body == JsonBody({"a": 1})


def test_bodies_in_other_encodings_get_their_bytes_back() -> None:
    (exchange,) = taken((CASSETTE % "string: café").replace("ASCII-8BIT", "ISO-8859-1"))
    assert exchange.response is not None
    assert exchange.response.body == BytesBody(b"caf\xe9")


def test_objects_of_ruby_are_data() -> None:
    text = (CASSETTE % "string: !ruby/string:Faraday::Body '{}'").replace(
        "    headers:\n", "    headers: !ruby/hash:H\n"
    )
    (exchange,) = taken(text)
    assert exchange.response is not None
    assert exchange.response.body == JsonBody({})
    assert exchange.request.headers["content-type"] == "application/json"


def test_json_cassettes() -> None:
    entry = {
        "request": {"method": "get", "uri": "https://x.example.com/", "body": {"encoding": "", "string": ""}},
        "response": {
            "status": {"code": 200, "message": "OK"},
            "headers": {"Content-Encoding": ["gzip"]},
            "body": {"encoding": "ASCII-8BIT", "base64_string": PACKED},
        },
        "recorded_at": "2026-01-01T00:00:00Z",
    }
    (exchange,) = taken(json.dumps({"http_interactions": [entry], "recorded_with": "VCR 6"}))
    assert exchange.request.method == "GET"
    assert exchange.request.body is None
    assert exchange.response is not None
    assert exchange.response.body == JsonBody({"a": 1})
