"""nock's recordings."""

from __future__ import annotations

import json
from typing import Any

from tests.support.importing import reasons, taken

from wiretape.model.http import JsonBody, TextBody, body_bytes


def recording(**members: Any) -> str:
    entry = {"scope": "https://api.example.com:443", "method": "post", "path": "/v1/chat/completions", "status": 200}
    return json.dumps([{**entry, **members}])


def test_a_recording() -> None:
    (exchange,) = taken(
        recording(body={"model": "m"}, response={"id": "c"}, rawHeaders=["Content-Type", "application/json"])
    )
    assert (exchange.request.method, exchange.request.url) == ("POST", "https://api.example.com/v1/chat/completions")
    assert exchange.request.body == JsonBody({"model": "m"}, exact=False)
    assert exchange.response is not None
    assert exchange.response.headers["content-type"] == "application/json"
    assert exchange.response.body == JsonBody({"id": "c"}, exact=False)


def test_bodies_as_text_and_as_hexadecimal() -> None:
    (exchange,) = taken(recording(body="q", response="plain", headers={"a": "1"}))
    assert exchange.request.body == TextBody("q")
    assert exchange.response is not None
    assert (exchange.response.body, exchange.response.headers["a"]) == (TextBody("plain"), "1")
    (exchange,) = taken(recording(response=["7b7d", "0a"], responseIsBinary=True))
    assert exchange.response is not None
    assert exchange.response.body is not None
    assert body_bytes(exchange.response.body) == b"{}\n"
    assert reasons(recording(response=["xyz"])) == ["dir/file entry 1: its body is not hexadecimal"]
