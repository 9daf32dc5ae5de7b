"""A scripted Responses server for WebSockets on loopback, and a small client: real sockets, no library.

The server answers each `response.create` with the result of `script(number from 1, message)`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from tests.support.upstream import frame, masked

Script = Callable[[int, dict[str, Any]], Iterable[dict[str, Any] | bytes]]


class Wire:
    """One end of a WebSocket."""

    def __init__(self, connection: socket.socket, client: bool) -> None:
        self._socket, self._client = connection, client
        self._reader = connection.makefile("rb")

    def head(self) -> list[str]:
        lines = []
        while line := self._reader.readline().strip():
            lines.append(line.decode("latin-1"))
        return lines

    def send(self, data: bytes, opcode: int = 1) -> None:
        self._socket.sendall(frame(opcode, data, os.urandom(4) if self._client else None))

    def receive(self) -> bytes | None:
        """The next message's data; None when the other side closes."""
        while True:
            head = self._reader.read(2)
            if len(head) < 2:
                return None
            size = head[1] & 0x7F
            if size > 125:
                size = struct.unpack(">H" if size == 126 else ">Q", self._reader.read(2 if size == 126 else 8))[0]
            mask = self._reader.read(4) if head[1] & 0x80 else b""
            data = self._reader.read(size)
            if head[0] & 0x0F == 8:
                return None
            if head[0] & 0x0F in (0, 1, 2):
                return masked(data, mask) if mask else data


@contextmanager
def socket_upstream(script: Script) -> Iterator[int]:
    """The port of a server that speaks the Responses API over WebSockets."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_accept, args=(listener, script), daemon=True).start()
        yield listener.getsockname()[1]


def _accept(listener: socket.socket, script: Script) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_serve, args=(connection, script), daemon=True).start()


def _serve(connection: socket.socket, script: Script) -> None:
    with connection:
        wire = Wire(connection, client=False)
        named = {name.lower(): value for name, _, value in (line.partition(": ") for line in wire.head()[1:])}
        key = named["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        connection.sendall(
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n"
            f"sec-websocket-accept: {accept}\r\n\r\n".encode()
        )
        asked = 0
        while (data := wire.receive()) is not None:
            asked += 1
            for said in script(asked, json.loads(data)):
                wire.send(said if isinstance(said, bytes) else json.dumps(said).encode())
        wire.send(struct.pack(">H", 1000), 8)


class Client:
    """A client as small as one can be. `base` is the API's base URL."""

    def __init__(self, base: str, **headers: str) -> None:
        url = urlsplit(base)
        self._socket = socket.create_connection((url.hostname or "", url.port or 80), 60)
        self._wire = Wire(self._socket, client=True)
        lines = [f"GET {url.path}/responses HTTP/1.1", f"host: {url.netloc}", "upgrade: websocket"]
        lines += ["connection: Upgrade", "sec-websocket-version: 13", f"sec-websocket-key: {'A' * 22}=="]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self._socket.sendall("\r\n".join([*lines, "", ""]).encode())
        assert " 101 " in self._wire.head()[0] + " "

    def ask(self, **body: Any) -> dict[str, Any]:
        """Send a `response.create`; the terminal event's response."""
        self.send(**body)
        while (data := self._wire.receive()) is not None:
            if b'"response.completed"' in data[:40]:
                answer: dict[str, Any] = json.loads(data)["response"]
                return answer
        raise EOFError("closed before the response was complete")

    def send(self, **body: Any) -> None:
        self._wire.send(json.dumps({"type": "response.create", "model": "m", **body}).encode())

    def leave(self) -> None:
        """Hang up without a word."""
        self._socket.close()

    def close(self) -> None:
        self._wire.send(struct.pack(">H", 1000), 8)
        assert self._wire.receive() is None
        self._socket.close()
