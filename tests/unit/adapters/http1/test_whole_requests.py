"""Heads that are read without a parser: as the parser reads them, or not at all."""

from __future__ import annotations

import httptools
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wiretape.adapters.http1.whole_requests import plain_head

PLAIN = b"POST /v1/x?y=1 HTTP/1.1\r\nHost: a\r\ncontent-length: 12"


def test_a_plain_head_is_read() -> None:
    head = plain_head(PLAIN + b"\r\nX-Two: 1 \r\nx-two:2")
    assert head is not None
    assert (head.method, head.target, head.length) == ("POST", "/v1/x?y=1", 12)
    assert head.headers.pairs() == [("host", "a"), ("content-length", "12"), ("x-two", "1"), ("x-two", "2")]


@pytest.mark.parametrize(
    "head",
    [
        b"HEAD / HTTP/1.1\r\nhost: a",
        b"CONNECT a:443 HTTP/1.1\r\nhost: a",
        b"POST http://a/x HTTP/1.1\r\nhost: a",
        b"POST / HTTP/1.0\r\nhost: a",
        b"POST /#x HTTP/1.1\r\nhost: a",
        b"POST / HTTP/1.1\r\n folded: a",
        b"POST / HTTP/1.1\r\nhost : a",
        b"POST / HTTP/1.1\r\nhost: \xe9",
        b"POST / HTTP/1.1\r\nhost: a\nb: c",
        b"POST  / HTTP/1.1\r\nhost: a",
        b"no head at all",
        PLAIN + b"\r\ncontent-length: 12",
        PLAIN.replace(b"12", b"+12"),
        PLAIN + b"\r\nconnection: close",
        PLAIN + b"\r\nconnection: keep-alive, upgrade",
        PLAIN + b"\r\nupgrade: websocket",
        PLAIN + b"\r\nexpect: 100-continue",
        PLAIN + b"\r\ntransfer-encoding: chunked",
    ],
)
def test_all_else_is_left_to_the_parser(head: bytes) -> None:
    assert plain_head(head) is None


class Parsed:
    def __init__(self) -> None:
        self.url, self.headers, self.done = b"", list[tuple[str, str]](), False

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.decode().lower(), value.decode("latin-1")))

    def on_message_complete(self) -> None:
        self.done = True


NAMES = [
    "host",
    "Connection",
    "content-length",
    "Content-Type",
    "x-a",
    "te",
    "Keep-Alive",
    "accept",
    "proxy-connection",
]
VALUES = ["", "a", "0", "3", "close", "keep-alive", "Keep-Alive", "a b", "\t7 ", "gzip, deflate", "trailers", "é"]
HEADERS = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(["", " ", "\t"]), st.sampled_from(VALUES)), max_size=5
)
TARGETS = st.sampled_from(["/", "/v1/x", "/v1/x?y=%20", "*", "/a b", "/\x7f", "//x", "/?", "/é"])


@given(st.sampled_from(["POST", "GET", "PATCH", "DELETE", "HEAD", "post"]), TARGETS, HEADERS)
def test_what_is_read_is_read_as_the_parser_reads_it(
    method: str, target: str, headers: list[tuple[str, str, str]]
) -> None:
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}:{gap}{value}" for name, gap, value in headers)]
    raw = "\r\n".join(lines).encode()
    head = plain_head(raw)
    if head is None:
        return
    parsed = Parsed()
    parser = httptools.HttpRequestParser(parsed)
    try:
        parser.feed_data(raw + b"\r\n\r\n" + b"x" * head.length)
    except httptools.HttpParserError:
        assert method == "post"  # a method that the parser does not know: it is shown another in its place
        return
    assert parsed.done
    assert parser.should_keep_alive()
    assert not parser.should_upgrade()
    assert (parser.get_method().decode(), parsed.url.decode()) == (head.method, head.target)
    trimmed = [(name, value.rstrip()) for name, value in parsed.headers]  # the parser leaves spaces behind values
    assert sorted(trimmed) == sorted(head.headers.pairs())
