"""Clients of answers that are held back, over HTTP/1.1 and HTTP/2: mitmproxy's own layers, without a socket."""

from __future__ import annotations

import time
from typing import Any

import pytest

pytest.importorskip("mitmproxy", reason="the recorder needs mitmproxy (Python 3.12 or later)")
pytest.importorskip("mitmproxy.addons", reason="the recorder needs mitmproxy (Python 3.12 or later)")

from h2.connection import H2Connection
from h2.events import DataReceived, ResponseReceived, StreamEnded
from mitmproxy.addons.proxyserver import Proxyserver
from mitmproxy.connection import Client, ConnectionState, Server
from mitmproxy.proxy import commands, context, events
from mitmproxy.proxy.layers.http import HttpLayer, HTTPMode
from mitmproxy.test import taddons

from wiretape.adapters.http1.send_playback import COMMENT
from wiretape.adapters.mitm._compat import held_answers

ANSWER = b"data: 1\n\n"
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9\r\n\r\n"


class Held:
    """A client's connection through the proxy, whose answer waits: `waits` says for how many asks more."""

    def __init__(self, alpn: bytes) -> None:
        held_answers.install()
        self.client = Client(peername=("127.0.0.1", 1), sockname=("127.0.0.1", 2), timestamp_start=time.time())
        self.client.state = ConnectionState.OPEN
        self.client.alpn = alpn
        self.sent: dict[Any, bytes] = {self.client: b""}
        self.flow: Any = None
        self.hooks: list[str] = []
        self.asked: list[Any] = []  # hooks of the held answer that are not completed yet
        with taddons.context(Proxyserver()) as made:
            around = context.Context(self.client, made.options)
            around.server = self.server = Server(address=("localhost", 80))
            self.server.state, self.server.timestamp_start = ConnectionState.OPEN, time.time()
            self.layer = HttpLayer(around, HTTPMode.transparent)
        self.happens(events.Start())

    def happens(self, event: events.Event) -> None:
        coming = [event]
        while coming:
            for command in self.layer.handle_event(coming.pop(0)):
                match command:
                    case commands.SendData(connection=to, data=data):
                        self.sent[to] = self.sent.get(to, b"") + data
                    case commands.StartHook():
                        coming += self._hooked(command)

    def _hooked(self, hook: Any) -> list[events.Event]:
        self.hooks.append(hook.name)
        if hook.name == "held_answer":
            self.asked.append(hook)
            return []
        if hook.name == "responseheaders":
            self.flow = hook.flow
            self.flow.metadata[held_answers.HELD] = True
        return [events.HookCompleted(hook)] if hook.blocking else []

    def decide(self, waits: bool) -> None:
        """What the addon says once it is asked whether the answer waits."""
        self.flow.metadata[held_answers.WAITS] = waits
        self.happens(events.HookCompleted(self.asked.pop()))


def over_h2() -> tuple[Held, H2Connection]:
    held, client = Held(b"h2"), H2Connection()
    client.initiate_connection()
    ask(client, 1)
    held.happens(events.DataReceived(held.client, client.data_to_send()))
    held.happens(events.DataReceived(held.server, HEAD + ANSWER))
    return held, client


def ask(client: H2Connection, stream: int) -> None:
    head = [(":method", "POST"), (":path", "/x"), (":scheme", "http"), (":authority", "localhost")]
    client.send_headers(stream, head)
    client.send_data(stream, b"{}", end_stream=True)


def heard(held: Held, client: H2Connection) -> list[Any]:
    told = client.receive_data(held.sent[held.client])
    held.sent[held.client] = b""
    return [event for event in told if isinstance(event, ResponseReceived | DataReceived | StreamEnded)]


def test_a_client_that_speaks_h2_is_kept_waiting_with_comments() -> None:
    held, client = over_h2()
    assert heard(held, client) == []
    held.decide(waits=True)
    head, comment = heard(held, client)
    assert dict(head.headers) == {b":status": b"200", b"content-type": b"text/event-stream"}, "no length, no chunks"
    assert comment.data == COMMENT
    held.decide(waits=True)
    assert [event.data for event in heard(held, client)] == [COMMENT]
    held.decide(waits=False)
    *data, end = heard(held, client)
    assert (b"".join(event.data for event in data), type(end)) == (ANSWER, StreamEnded)


def test_an_answer_that_does_not_wait_goes_out_over_h2_as_it_came() -> None:
    held, client = over_h2()
    held.decide(waits=False)
    head, *data, _ = heard(held, client)
    assert (dict(head.headers)[b"content-length"], b"".join(event.data for event in data)) == (b"9", ANSWER)


def test_an_h2_client_that_resets_its_stream_is_kept_waiting_no_longer() -> None:
    held, client = over_h2()
    held.decide(waits=True)
    heard(held, client)
    client.reset_stream(1, 8)
    held.happens(events.DataReceived(held.client, client.data_to_send()))
    held.decide(waits=True)
    assert held.asked == [], "nobody is asked again"
    assert held.hooks[-1] == "response", "the addon hears that it is over"
    assert ANSWER not in held.sent[held.client]
    assert COMMENT not in held.sent[held.client]


def test_over_http1_the_same_is_sent_in_chunks() -> None:
    held = Held(b"http/1.1")
    ask = b"POST /x HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}"
    held.happens(events.DataReceived(held.client, ask))
    held.happens(events.DataReceived(held.server, HEAD + ANSWER))
    held.decide(waits=True)
    held.decide(waits=False)
    head, _, body = held.sent[held.client].partition(b"\r\n\r\n")
    assert b"transfer-encoding: chunked" in head.lower()
    assert b"content-length" not in head.lower()
    chunks = [b"%x\r\n%b\r\n" % (len(part), part) for part in (COMMENT, ANSWER)]
    assert body == b"".join(chunks) + b"0\r\n\r\n"
