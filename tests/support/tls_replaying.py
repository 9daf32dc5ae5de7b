"""Clients of a replay that intercepts TLS: tunnels through its proxy, HTTP/1.1 with httpx, HTTP/2 by hand."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from wiretape.adapters.replay_runner import ReplayServer, ReplayServerOptions
from wiretape.matching.session import ReplaySession

PATIENCE_S = 30


@contextmanager
def opening(
    replay: ReplaySession, state: Path, everything: bool = True, **options: Any
) -> Iterator[tuple[ReplayServer, ssl.SSLContext, list[str]]]:
    """(a replay that opens TLS, what its clients trust, the troubles it told)."""
    from wiretape.adapters.mitm.tls_interception import authority

    environ = {"XDG_STATE_HOME": str(state)}
    told: list[str] = []
    made = authority(environ, everything)
    with ReplayServer(replay, ReplayServerOptions(authority=made, trouble=told.append, **options)) as running:
        context = ssl.create_default_context(cafile=running.variables(environ)["SSL_CERT_FILE"])
        yield running, context, told


def client(running: ReplayServer, context: ssl.SSLContext | bool) -> httpx.Client:
    proxy = f"http://127.0.0.1:{running.proxy_port}"
    return httpx.Client(proxy=proxy, verify=context, trust_env=False, timeout=PATIENCE_S)


def tunnel(running: ReplayServer, host: str, port: int = 443) -> socket.socket:
    """What a client gets that has asked for a tunnel and was given one."""
    raw = socket.create_connection(("127.0.0.1", running.proxy_port), timeout=PATIENCE_S)
    raw.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
    answer = raw.recv(4096)
    if not answer.startswith(b"HTTP/1.1 200"):
        raw.close()
        raise ConnectionRefusedError(answer.decode())
    return raw


class H2:
    """One connection over HTTP/2, with as many streams as are started."""

    def __init__(self, running: ReplayServer, context: ssl.SSLContext, host: str, port: int = 443) -> None:
        from h2.connection import H2Connection

        context.set_alpn_protocols(["h2", "http/1.1"])
        self.socket = context.wrap_socket(tunnel(running, host, port), server_hostname=host)
        self.protocol = self.socket.selected_alpn_protocol()
        self._host = host
        self._connection: Any = H2Connection()
        self._connection.initiate_connection()

    def start(self, path: str, body: bytes, method: str = "POST") -> int:
        number: int = self._connection.get_next_available_stream_id()
        headers = [(":method", method), (":path", path), (":scheme", "https"), (":authority", self._host)]
        self._connection.send_headers(number, [*headers, ("content-type", "application/json")])
        self._connection.send_data(number, body, end_stream=True)
        self.socket.sendall(self._connection.data_to_send())
        return number

    def events(self) -> Iterator[Any]:
        while data := self.socket.recv(65536):
            for event in self._connection.receive_data(data):
                if hasattr(event, "flow_controlled_length"):
                    self._connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                yield event
            self.socket.sendall(self._connection.data_to_send())

    def __enter__(self) -> H2:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()
