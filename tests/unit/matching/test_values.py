"""Split addresses of requests."""

from __future__ import annotations

import pytest

from wiretape.compare.address import address
from wiretape.compare.difference import ABSENT
from wiretape.matching.values import Reference


@pytest.mark.parametrize(
    ("url", "host", "path", "query"),
    [
        ("https://api.example.com/v1/x?a=1", "api.example.com", "/v1/x", "a=1"),
        ("https://API.example.com:443/v1/x", "api.example.com", "/v1/x", ""),
        ("http://127.0.0.1:8080", "127.0.0.1:8080", "/", ""),
        ("https://user:pass@a.example/x", "a.example", "/x", ""),
        ("/v1/x?a=1", "", "/v1/x", "a=1"),
        ("http://[broken/x?y", "", "http://[broken/x", "y"),
    ],
)
def test_an_address_is_host_path_and_query(url: str, host: str, path: str, query: str) -> None:
    found = address("post", url)
    assert (found.method, found.host, found.path, found.query) == ("POST", host, path, query)


@pytest.mark.parametrize(
    ("url", "tail"),
    [
        ("https://a/v1/chat/completions", "completions"),
        ("https://a/models/gemini-x:generateContent?alt=sse", "gemini-x:generateContent"),
        ("https://a/v1/messages/", "messages"),
        ("https://a", ""),
    ],
)
def test_the_tail_is_the_last_segment_of_the_path(url: str, tail: str) -> None:
    assert address("POST", url).tail == tail


def test_a_reference_names_a_call_or_else_an_exchange() -> None:
    assert str(Reference("t", 7, 3, "POST /x")) == "call 3"
    assert str(Reference("t", 7, None, "GET /x")) == "x7"
    assert repr(ABSENT) == "(nothing)"
