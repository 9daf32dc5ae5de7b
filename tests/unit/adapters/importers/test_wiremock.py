"""WireMock's stub mappings."""

from __future__ import annotations

import json
from typing import Any

from tests.support.importing import reasons, taken

from wiretape.model.http import JsonBody

ASKED = {"method": "POST", "url": "/v1/chat/completions", "bodyPatterns": [{"equalToJson": {"model": "m"}}]}


def mapping(asked: dict[str, Any], **answered: Any) -> dict[str, Any]:
    return {"id": "1", "request": asked, "response": {"status": 201, **answered}}


def test_a_mapping_in_yaml() -> None:
    (exchange,) = taken(
        "---\nid: 1\nrequest:\n  url: /v1/messages\n  method: POST\n  bodyPatterns:\n"
        '  - equalToJson: \'{"model": "m"}\'\nresponse:\n  status: 200\n  body: \'{"id": "c"}\'\n'
    )
    assert (exchange.request.method, exchange.request.url) == ("POST", "unknown:/v1/messages")
    assert isinstance(exchange.request.body, JsonBody)
    assert exchange.request.body.value == {"model": "m"}
    assert exchange.response is not None
    assert isinstance(exchange.response.body, JsonBody)
    assert exchange.response.body.value == {"id": "c"}


def test_several_mappings_in_json() -> None:
    first = mapping(ASKED, jsonBody={"id": "c"}, headers={"Content-Type": "application/json"})
    second = mapping({"method": "POST", "urlPath": "/v1/messages"}, body="hi")
    one, two = taken(json.dumps({"mappings": [first, second]}))
    assert one.response is not None
    assert (one.response.status, one.response.body) == (201, JsonBody({"id": "c"}, exact=False))
    assert (two.request.url, two.request.body) == ("unknown:/v1/messages", None)


def test_what_a_mapping_does_not_hold_is_refused() -> None:
    elsewhere = mapping(ASKED, bodyFileName="a.json")
    pattern = mapping({"method": "POST", "urlPattern": "/v1/.*"}, jsonBody={})
    assert reasons(json.dumps({"mappings": [elsewhere, pattern]})) == [
        "dir/file entry 1: has its body in another file, a.json",
        "dir/file entry 2: has no URL but a pattern of one",
    ]
