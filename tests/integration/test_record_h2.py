"""HTTP/2 through the recorder on both sides: the protocol of the client, streams, and resets by either side."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mitmproxy", reason="the recorder needs mitmproxy (Python 3.12 or later)")
pytest.importorskip("mitmproxy.addons", reason="the recorder needs mitmproxy (Python 3.12 or later)")

from tests.support.certificates import make_authority
from tests.support.h2_upstream import H2Upstream
from tests.support.proxying import Spy, recording
from tests.support.upstream import CHAT_ANSWER, Upstream

from wiretape.model.http import Ended

pytestmark = pytest.mark.proxy


@pytest.fixture
def authority(tmp_path: Path) -> tuple[Path, ssl.SSLContext]:
    return make_authority(tmp_path)


class H2Client:
    """One tunnel through the proxy, offering these protocols."""

    def __init__(self, proxy: int, upstream: int, trusted: str, *protocols: str) -> None:
        raw = socket.create_connection(("127.0.0.1", proxy), timeout=10)
        raw.sendall(f"CONNECT localhost:{upstream} HTTP/1.1\r\nHost: localhost:{upstream}\r\n\r\n".encode())
        assert raw.recv(4096).startswith(b"HTTP/1.1 200")
        context = ssl.create_default_context(cafile=trusted)
        context.set_alpn_protocols(list(protocols))
        self.socket = context.wrap_socket(raw, server_hostname="localhost")
        self.protocol = self.socket.selected_alpn_protocol()

    def start(self, path: str, body: bytes, stream: int = 1) -> None:
        from h2.connection import H2Connection

        if stream == 1:
            self.connection: Any = H2Connection()
            self.connection.initiate_connection()
        headers = [(":method", "POST"), (":path", path), (":scheme", "https"), (":authority", "localhost")]
        self.connection.send_headers(stream, headers)
        self.connection.send_data(stream, body, end_stream=True)
        self.socket.sendall(self.connection.data_to_send())

    def events(self) -> Iterator[Any]:
        while data := self.socket.recv(65536):
            yield from self.connection.receive_data(data)
            self.socket.sendall(self.connection.data_to_send())

    def body(self) -> bytes:
        """Of the stream at hand, to its end."""
        from h2 import events

        got = b""
        for event in self.events():
            if isinstance(event, events.DataReceived):
                got += event.data
            if isinstance(event, events.StreamEnded | events.StreamReset):
                break
        return got

    def reset(self) -> None:
        from h2.errors import ErrorCodes

        self.connection.reset_stream(1, ErrorCodes.CANCEL)
        self.socket.sendall(self.connection.data_to_send())


@pytest.fixture
def spoken(authority: tuple[Path, ssl.SSLContext], state: Path) -> Iterator[tuple[Spy, H2Upstream, H2Client]]:
    spy = Spy()
    with (
        H2Upstream(authority[1]) as upstream,
        recording(spy, state, {"SSL_CERT_FILE": str(authority[0])}) as (running, _),
    ):
        client = H2Client(running.port, upstream.port, running.variables()["SSL_CERT_FILE"], "h2", "http/1.1")
        yield spy, upstream, client
        client.socket.close()


def test_a_stream_over_h2_is_recorded_as_such(spoken: tuple[Spy, H2Upstream, H2Client]) -> None:
    from h2 import events

    spy, upstream, client = spoken
    assert client.protocol == "h2"
    client.start("/ok", b"{}")
    got = b""
    for event in client.events():
        if isinstance(event, events.DataReceived):
            got += event.data
        if isinstance(event, events.StreamEnded):
            break
    assert got == b"data: 1\n\ndata: 2\n\n"
    assert spy.wait_for_end() is Ended.COMPLETE
    assert spy.named("begin")[0][:3] == ("POST", f"https://localhost:{upstream.port}/ok", "2")
    assert spy.data("request_data") == b"{}"
    assert spy.data("response_data") == got
    assert upstream.bodies == [b"{}"]


def test_a_stream_that_the_upstream_resets_over_h2(spoken: tuple[Spy, H2Upstream, H2Client]) -> None:
    from h2 import events

    spy, _, client = spoken
    client.start("/reset", b"{}")
    assert any(isinstance(event, events.StreamReset) for event in client.events())
    assert spy.wait_for_end() is Ended.UPSTREAM_CLOSED
    assert spy.data("response_data") == b"data: 1\n\n"


@pytest.mark.parametrize("path", ["/drain", "/drain-twice"])
def test_a_stream_completes_on_a_draining_connection(spoken: tuple[Spy, H2Upstream, H2Client], path: str) -> None:
    spy, upstream, client = spoken
    client.start(path, b"{}")
    assert client.body() == b"data: 1\n\ndata: 2\n\n"
    assert spy.wait_for_end() is Ended.COMPLETE
    client.start("/ok", b"{}", stream=3)
    assert client.body() == b"data: 1\n\ndata: 2\n\n"
    assert spy.wait_for_end(2) is Ended.COMPLETE
    assert upstream.connections == 2


def test_a_connection_error_of_the_server_cuts_the_stream(
    spoken: tuple[Spy, H2Upstream, H2Client],
) -> None:
    spy, _, client = spoken
    client.start("/refuse", b"{}")
    assert b"data: 2" not in client.body()
    assert spy.wait_for_end() is Ended.UPSTREAM_CLOSED


def test_a_stream_that_the_client_resets_over_h2(spoken: tuple[Spy, H2Upstream, H2Client]) -> None:
    from h2 import events

    spy, upstream, client = spoken
    client.start("/held", b"{}")
    assert any(isinstance(event, events.DataReceived) for event in client.events())
    client.reset()
    assert spy.wait_for_end() is Ended.CLIENT_CLOSED
    assert upstream.reset_by_client.wait(20)
    assert spy.data("response_data") == b"data: 1\n\n"


def test_a_client_with_h2_is_offered_the_protocol_of_its_upstream(
    authority: tuple[Path, ssl.SSLContext], state: Path
) -> None:
    import json

    spy = Spy()
    with (
        Upstream(tls=authority[1]) as upstream,
        recording(spy, state, {"SSL_CERT_FILE": str(authority[0])}) as (running, _),
    ):
        client = H2Client(running.port, upstream.port, running.variables()["SSL_CERT_FILE"], "h2", "http/1.1")
        assert client.protocol == "http/1.1"
        client.socket.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}")
        got = b""
        while not got.endswith(b"}"):
            got += client.socket.recv(65536)
        assert json.loads(got.partition(b"\r\n\r\n")[2]) == CHAT_ANSWER
        client.socket.close()
        assert spy.wait_for_end() is Ended.COMPLETE
    assert spy.named("begin")[0][2] == "1.1"
