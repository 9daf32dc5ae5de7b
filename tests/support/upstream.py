"""A scripted upstream on loopback, for tests of the recorder: it answers, streams, stalls, resets and echoes.

The end of the path selects the behaviour: see `_handlers`. A test releases a held stream with `open_gate`; `seen` lists
the requests.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.support.looped import LoopedServer

CHAT_ANSWER = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "scripted-1",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "It is sunny."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16},
}
MESSAGES_ANSWER = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "scripted-2",
    "content": [{"type": "text", "text": "It is raining."}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 12, "output_tokens": 6},
}


def chat_chunk(text: str | None = None, finish: str | None = None) -> bytes:
    delta = {} if text is None else {"role": "assistant", "content": text}
    chunk = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "scripted-1",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


CHAT_EVENTS = [
    chat_chunk("It "),
    chat_chunk("is "),
    chat_chunk("sunny."),
    chat_chunk(finish="stop"),
    b"data: [DONE]\n\n",
]


@dataclass
class Seen:
    """A received request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""
    reader: asyncio.StreamReader | None = field(default=None, repr=False)


@dataclass
class Upstream(LoopedServer):
    """Runs on a thread. `closed` is set when a client went away."""

    tls: ssl.SSLContext | None = None
    seen: list[Seen] = field(default_factory=list)
    closed: threading.Event = field(default_factory=threading.Event)
    port: int = 0

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://{'localhost' if self.tls else '127.0.0.1'}:{self.port}"

    def open_gate(self) -> None:
        """Let a held stream go one step on."""
        self.on_loop(self._gate.release)

    def started(self) -> None:
        self._gate = asyncio.Semaphore(0)

    def went_away(self) -> None:
        self.closed.set()

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (request := await self._read(reader)) is not None:
            self.seen.append(request)
            if not await self._answer(request, writer):
                break

    async def _read(self, reader: asyncio.StreamReader) -> Seen | None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        except asyncio.IncompleteReadError:
            return None
        line, *fields = head.rstrip("\r\n").split("\r\n")
        method, path, _ = line.split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (f.partition(":") for f in fields)}
        body = await self._read_body(reader, headers)
        return Seen(method, path, headers, body, reader)

    async def _read_body(self, reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding") == "chunked":
            body = b""
            while size := int((await reader.readline()).strip(), 16):
                body += await reader.readexactly(size)
                await reader.readline()
            await reader.readline()
            return body
        return await reader.readexactly(int(headers.get("content-length", "0")))

    async def _answer(self, request: Seen, writer: asyncio.StreamWriter) -> bool:
        path = request.path.partition("?")[0]
        handler = next((h for tail, h in self._handlers().items() if path.endswith(tail)), self._echo)
        return await handler(request, writer)

    def _handlers(self) -> dict[str, Callable[[Seen, asyncio.StreamWriter], Awaitable[bool]]]:
        return {
            "/slow/chat/completions": self._slow,
            "/chat/completions": self._chat,
            "/v1/messages": self._messages,
            "/gzip": self._gzip,
            "/limited": self._limited,
            "/reset": self._reset,
            "/reset-at-once": self._reset_at_once,
            "/cut": self._cut,
            "/held": self._held,
            "/channel": self._channel,
            "/ws": self._websocket,
            "/nothing": self._nothing,
            "/hangs": self._hangs,
        }

    async def _echo(self, request: Seen, writer: asyncio.StreamWriter) -> bool:
        return await self._json(writer, {"method": request.method, "path": request.path, "length": len(request.body)})

    async def _chat(self, request: Seen, writer: asyncio.StreamWriter) -> bool:
        asked = json.loads(request.body)
        if not asked.get("stream"):
            return await self._json(writer, CHAT_ANSWER)
        self._stream_head(writer)
        for event in CHAT_EVENTS:
            self._chunk(writer, event)
            await writer.drain()
        return self._stream_end(writer)

    async def _messages(self, request: Seen, writer: asyncio.StreamWriter) -> bool:
        return await self._json(writer, MESSAGES_ANSWER)

    async def _gzip(self, request: Seen, writer: asyncio.StreamWriter) -> bool:
        body = gzip.compress(json.dumps(CHAT_ANSWER).encode())
        return await self._whole(writer, 200, body, "content-type: application/json", "content-encoding: gzip")

    async def _limited(self, request: Seen, writer: asyncio.StreamWriter) -> bool:
        body = b'{"error":{"message":"slow down","type":"rate_limit"}}'
        return await self._whole(writer, 429, body, "content-type: application/json", "retry-after: 7", "x-odd: \xe9")

    async def _nothing(self, request: Seen, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        return True

    async def _reset(self, request: Seen, writer: asyncio.StreamWriter) -> bool:
        """Two events, then a reset."""
        self._stream_head(writer)
        for event in CHAT_EVENTS[:2]:
            self._chunk(writer, event)
        await writer.drain()
        await self._gate.acquire()
        return self._abort(writer)

    async def _reset_at_once(self, request: Seen, writer: asyncio.StreamWriter) -> bool:
        return self._abort(writer)

    async def _cut(self, request: Seen, writer: asyncio.StreamWriter) -> bool:
        """Fewer bytes than announced, then an orderly end of the connection."""
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n" + b'{"half": ')
        await writer.drain()
        return False

    async def _held(self, request: Seen, writer: asyncio.StreamWriter) -> bool:
        """Each event waits for the gate."""
        self._stream_head(writer)
        for event in CHAT_EVENTS:
            self._chunk(writer, event)
            await writer.drain()
            await self._gate_or_gone(request)
        return self._stream_end(writer)

    async def _slow(self, request: Seen, writer: asyncio.StreamWriter) -> bool:
        """Like a held stream, but its first event contains only the role."""
        self._stream_head(writer)
        for event in (chat_chunk(""), *CHAT_EVENTS):
            self._chunk(writer, event)
            await writer.drain()
            await self._gate_or_gone(request)
        return self._stream_end(writer)

    async def _channel(self, request: Seen, writer: asyncio.StreamWriter) -> bool:
        """An SSE channel that never ends: an event for each opening of the gate."""
        self._stream_head(writer)
        number = 0
        while True:
            self._chunk(writer, b"event: message\ndata: %d\n\n" % number)
            await writer.drain()
            number += 1
            await self._gate_or_gone(request)

    async def _hangs(self, request: Seen, writer: asyncio.StreamWriter) -> bool:
        await self._gate_or_gone(request)
        return False

    async def _gate_or_gone(self, request: Seen) -> None:
        """Wait for the gate, or for the client to hang up."""
        assert request.reader is not None
        gate = asyncio.ensure_future(self._gate.acquire())
        gone = asyncio.ensure_future(request.reader.read(1))
        done, pending = await asyncio.wait({gate, gone}, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        if gone in done:
            raise ConnectionResetError("the client hung up")

    async def _websocket(self, request: Seen, writer: asyncio.StreamWriter) -> bool:
        """Echoes every message, until a close frame, which it answers."""
        key = request.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        writer.write(
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n"
            f"sec-websocket-accept: {accept}\r\n\r\n".encode()
        )
        assert request.reader is not None
        while True:
            opcode, data = await read_frame(request.reader)
            writer.write(frame(opcode, data))
            await writer.drain()
            if opcode == 8:
                return False

    async def _json(self, writer: asyncio.StreamWriter, value: object) -> bool:
        return await self._whole(writer, 200, json.dumps(value).encode(), "content-type: application/json")

    async def _whole(self, writer: asyncio.StreamWriter, status: int, body: bytes, *headers: str) -> bool:
        lines = [f"HTTP/1.1 {status} Said", *headers, f"content-length: {len(body)}", "", ""]
        writer.write("\r\n".join(lines).encode("latin-1") + body)
        await writer.drain()
        return True

    @staticmethod
    def _stream_head(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")

    @staticmethod
    def _chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
        writer.write(b"%x\r\n%s\r\n" % (len(data), data))

    @staticmethod
    def _stream_end(writer: asyncio.StreamWriter) -> bool:
        writer.write(b"0\r\n\r\n")
        return True

    @staticmethod
    def _abort(writer: asyncio.StreamWriter) -> bool:
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
        return False


@contextmanager
def raw_upstream(*pieces: bytes) -> Iterator[int]:
    """The port of an upstream that answers one request with these bytes, a moment apart, and hangs up."""

    def answer(listener: socket.socket) -> None:
        client, _ = listener.accept()
        with client:
            client.recv(65536)
            for piece in pieces:
                client.sendall(piece)
                time.sleep(0.05)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)
        thread = threading.Thread(target=answer, args=(listener,))
        thread.start()
        yield listener.getsockname()[1]
        thread.join(10)


def frame(opcode: int, data: bytes, mask: bytes | None = None) -> bytes:
    """One whole WebSocket frame."""
    size = len(data)
    flag = 0x80 if mask else 0
    if size < 126:
        head = bytes([0x80 | opcode, flag | size])
    elif size < 65536:
        head = bytes([0x80 | opcode, flag | 126]) + struct.pack(">H", size)
    else:
        head = bytes([0x80 | opcode, flag | 127]) + struct.pack(">Q", size)
    if mask is None:
        return head + data
    return head + mask + masked(data, mask)


async def read_frame(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    first, second = await reader.readexactly(2)
    size = second & 0x7F
    if size == 126:
        (size,) = struct.unpack(">H", await reader.readexactly(2))
    elif size == 127:
        (size,) = struct.unpack(">Q", await reader.readexactly(8))
    mask = await reader.readexactly(4) if second & 0x80 else b""
    data = await reader.readexactly(size)
    if mask:
        data = masked(data, mask)
    return first & 0x0F, data


def masked(data: bytes, mask: bytes) -> bytes:
    repeated = (mask * (len(data) // 4 + 1))[: len(data)]
    return (int.from_bytes(data, "big") ^ int.from_bytes(repeated, "big")).to_bytes(len(data), "big")
