"""HTTP/1.1 messages: how heads, chunks and whole responses are written, and how the head of a request is read."""

from __future__ import annotations

import pytest

from wiretape.adapters.http1.messages import RequestReader, chunk, read_request_head, response, response_head

PLAIN = (("content-type", "text/plain"),)


def test_an_upgrade_leaves_the_bytes_after_it_to_the_other_protocol() -> None:
    reader = RequestReader(lambda _: None)
    head = b"GET /ws HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n"
    assert reader.feed(head + b"\x81\x00") == b"\x81\x00"
    assert (reader.complete, reader.method) == (True, "GET")


def test_a_response_has_a_head_a_length_and_its_body() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n"
    assert response(200, PLAIN, b"ok") == head + b"content-length: 2\r\n\r\nok"
    assert response(200, PLAIN, b"ok", keep_alive=False) == (head + b"connection: close\r\ncontent-length: 2\r\n\r\nok")
    assert response(204, (), b"") == b"HTTP/1.1 204 No Content\r\n\r\n"
    assert response_head(529, ()) == b"HTTP/1.1 529 \r\n"


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("x", "one\r\ninjected: two", b"x: one  injected: two\r\n"),
        ("x", "one\ntwo", b"x: one two\r\n"),
        ("x", "one\ttwo", b"x: one\ttwo\r\n"),
        ("x", "\xe9", b"x: \xe9\r\n"),
        ("x", "你", b"x: ?\r\n"),
        ("not a token", "one", b""),
        ("x\r\ninjected", "one", b""),
        ("", "one", b""),
    ],
)
def test_a_header_cannot_add_another_one(name: str, value: str, line: bytes) -> None:
    assert response_head(200, ((name, value),)) == b"HTTP/1.1 200 OK\r\n" + line


def test_an_empty_chunk_is_left_out_because_it_would_end_the_body() -> None:
    assert (chunk(b"x" * 17), chunk(b"")) == (b"11\r\n" + b"x" * 17 + b"\r\n", b"")


def test_the_head_of_a_proxied_request_is_read_and_written_for_another_target() -> None:
    raw = b"POST http://a/x?y=1 HTTP/1.0\r\nHost: a\r\nX-Odd:  1\r\nProxy-Connection: keep-alive\r\n\r\n"
    head = read_request_head(raw)
    assert (head.method, head.target, head.version, head.host) == ("POST", "http://a/x?y=1", "1.0", "a")
    assert head.to_bytes("/x", frozenset({b"proxy-connection"}), (b"connection", b"close")) == (
        b"POST /x HTTP/1.0\r\nHost: a\r\nX-Odd: 1\r\nconnection: close\r\n\r\n"
    )


@pytest.mark.parametrize(
    ("raw", "method", "target"),
    [
        (b"CONNECT a.example:443 HTTP/1.1\r\n\r\n", "CONNECT", "a.example:443"),
        (b"GET /ws HTTP/1.1\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n", "GET", "/ws"),
    ],
)
def test_the_head_of_a_tunnel_or_a_handshake_is_read(raw: bytes, method: str, target: str) -> None:
    head = read_request_head(raw)
    assert (head.method, head.target) == (method, target)


@pytest.mark.parametrize("raw", [b"nonsense\r\n\r\n", b"GET\r\n\r\n", b"\x16\x03\x01\r\n\r\n", b"GET / HTTP/1.1\r\n"])
def test_bytes_that_are_not_a_head_are_an_error(raw: bytes) -> None:
    with pytest.raises(ValueError, match="it is not an HTTP/1 request"):
        read_request_head(raw)
