"""An exchange shown whole, and written back as it was on the wire."""

from __future__ import annotations

from tests.support.views import shown

from wiretape.model.http import (
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
)
from wiretape.views.show.exchange import body_text, exchange_view, exchange_words, raw_exchange

FRAMES = ('data: {"text": "今天"}\n\n'.encode(), b"data: [DONE]\n\n")
STREAMED = Exchange(
    3,
    100,
    Request("POST", "https://h/v1/x", Headers([("a", "1"), ("a", "2")]), JsonBody({"问": 1}, "spaced"), "1.1"),
    Response(200, Headers([("content-type", "text/event-stream")]), 150, StreamBody(FRAMES, (0, 3))),
    Ended.UPSTREAM_CLOSED,
    400,
)


def test_raw_is_heads_and_bodies_byte_for_byte() -> None:
    assert (
        raw_exchange(STREAMED)
        == (
            'POST https://h/v1/x HTTP/1.1\na: 1\na: 2\n\n{"问": 1}\n\n'
            'HTTP/1.1 200\ncontent-type: text/event-stream\n\ndata: {"text": "今天"}\n\ndata: [DONE]\n\n\n'
        ).encode()
    )


def test_raw_keeps_binary_bodies() -> None:
    body = bytes(range(256))
    exchange = Exchange(1, 0, Request("GET", "https://h/"), Response(200, body=BytesBody(body)))
    assert body in raw_exchange(exchange)


def test_raw_keeps_the_messages_of_a_websocket() -> None:
    messages = (WsMessage(5, "client", TextBody("hi")), WsMessage(9, "server", BytesBody(b"\x00\xff")))
    exchange = Exchange(1, 0, Request("GET", "wss://h/"), Response(101), None, None, messages)
    assert raw_exchange(exchange).endswith(b"\n\nclient at 5 ms, 2 bytes\nhi\n\nserver at 9 ms, 2 bytes\n\x00\xff\n")


def test_an_exchange_in_one_line_says_how_it_ended() -> None:
    assert exchange_words(STREAMED) == "200, text/event-stream, 40 B, 300 ms, upstream closed"
    unreachable = Exchange(4, 0, Request("GET", "https://h/"), None, Ended.UPSTREAM_UNREACHABLE, 20)
    assert exchange_words(unreachable) == "no response, 20 ms, upstream unreachable"
    close = Close(1006, "", None)
    open_socket = Exchange(5, 0, Request("GET", "wss://h/"), Response(101), messages=(), close=close)
    assert exchange_words(open_socket) == "101, 0 B, still open, closed with 1006"


def test_binary_bodies_say_how_long_they_are() -> None:
    assert body_text(BytesBody(b"\x00" * 10)) == "(10 bytes; --raw writes them)"
    assert body_text(StreamBody((b"\x00" * 7,), (0,), binary=True)) == "(7 bytes; --raw writes them)"


def test_a_socket_shows_who_sent_what_and_when() -> None:
    messages = (WsMessage(5, "client", JsonBody({"type": "response.create"})), WsMessage(90, "server", TextBody("ok")))
    screen = shown(exchange_view(Exchange(1, 0, Request("GET", "wss://h/v1"), Response(101), messages=messages)))
    assert '→     5 ms  { "type": "response.create" }\n←    90 ms  ok\n' in screen


def test_an_exchange_that_holds_calls_names_them() -> None:
    assert "x3 · holds calls 4, 5\n" in shown(exchange_view(STREAMED, calls=(4, 5)))
    assert "x3 · no model call\n" in shown(exchange_view(STREAMED))


def test_nothing_in_it_is_obeyed_by_the_terminal() -> None:
    hostile = Response(200, Headers([("x", "\x1b[2J")]), body=TextBody("\x1b]0;title\x07[bold]"))
    screen = shown(exchange_view(Exchange(1, 0, Request("GET", "https://h/\x1b[1m"), hostile)))
    assert "\x1b" not in screen
    assert "\x07" not in screen
    assert "[bold]" in screen
