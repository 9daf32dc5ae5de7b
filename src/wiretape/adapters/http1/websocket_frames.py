"""WebSocket frames as bytes (RFC 6455, permessage-deflate): read from both sides, written for a server. No I/O.

wsproto does the same. It takes 33 ms to import and three times as long for short messages, does not limit what a
compressed message expands to, and refuses close codes that a tape can have.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from wiretape.tape.format.codings import most_decoded

TEXT: Final = 1
BINARY: Final = 2
CLOSE: Final = 8
PING: Final = 9
PONG: Final = 10
NO_STATUS: Final = 1005
_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_TAIL: Final = b"\x00\x00\xff\xff"


@dataclass(frozen=True, slots=True)
class WebSocketEvent:
    """A whole message, or a control frame. `code`: of a close frame."""

    kind: Literal["message", "close", "ping", "pong"]
    data: str | bytes
    code: int = 0


class FrameReader:
    """Reads the frames of one side. `deflated`: permessage-deflate was negotiated.

    ValueError: a frame breaks the protocol.
    """

    def __init__(self, deflated: bool = False) -> None:
        self._buffer = bytearray()
        self._parts: list[bytes] = []
        self._opcode = 0
        self._compressed = False
        # A context that is kept also decodes a sender that resets its own for each message.
        self._inflater = zlib.decompressobj(-15) if deflated else None

    def feed(self, data: bytes) -> list[WebSocketEvent]:
        self._buffer += data
        return list(self._events())

    def _events(self) -> Iterator[WebSocketEvent]:
        while (frame := self._frame()) is not None:
            first, payload = frame
            opcode = first & 0x0F
            if opcode == CLOSE:
                code = int.from_bytes(payload[:2], "big") if len(payload) >= 2 else NO_STATUS
                yield WebSocketEvent("close", payload[2:].decode("utf-8", "replace"), code)
            elif opcode in (PING, PONG):
                yield WebSocketEvent("ping" if opcode == PING else "pong", payload)
            else:
                if opcode not in (0, TEXT, BINARY) or bool(opcode) is bool(self._opcode):
                    raise ValueError(f"unexpected frame with opcode {opcode}")
                if opcode:
                    self._opcode, self._parts, self._compressed = opcode, [], bool(first & 0x40)
                self._parts.append(payload)
                if first & 0x80:
                    yield self._message()

    def _frame(self) -> tuple[int, bytes] | None:
        """Return the first byte and the unmasked payload of the next frame; None if it is incomplete."""
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        length, at = buffer[1] & 0x7F, 2
        if length >= 126:
            size = 2 if length == 126 else 8
            if len(buffer) < 2 + size:
                return None
            length, at = int.from_bytes(buffer[2 : 2 + size], "big"), 2 + size
            if length >> 63:
                raise ValueError("the length of a frame exceeds 63 bits")
        masked = bool(buffer[1] & 0x80)
        start = at + (4 if masked else 0)
        if len(buffer) < start + length:
            return None
        payload = bytes(buffer[start : start + length])
        if masked:
            payload = _unmasked(payload, bytes(buffer[at:start]))
        first = buffer[0]
        del buffer[: start + length]
        return first, payload

    def _message(self) -> WebSocketEvent:
        data = b"".join(self._parts)
        self._parts = []
        if self._compressed:
            if self._inflater is None:
                raise ValueError("a compressed message, but compression was not negotiated")
            limit = most_decoded(len(data))
            data = self._inflater.decompress(data + _TAIL, limit)
            if self._inflater.unconsumed_tail:
                raise ValueError(f"a compressed message decodes to more than {limit:,} bytes")
        opcode, self._opcode = self._opcode, 0
        return WebSocketEvent("message", data.decode("utf-8", "replace") if opcode == TEXT else data)


def _unmasked(payload: bytes, mask: bytes) -> bytes:
    """Undo the masking, which is its own inverse. One XOR of two large integers is faster than a loop."""
    key = (mask * (len(payload) // 4 + 1))[: len(payload)]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(key, "big")).to_bytes(len(payload), "big")


def frame(opcode: int, payload: bytes) -> bytes:
    """Write an unmasked frame."""
    length = len(payload)
    if length < 126:
        head = bytes([0x80 | opcode, length])
    elif length < 65536:
        head = bytes([0x80 | opcode, 126]) + length.to_bytes(2, "big")
    else:
        head = bytes([0x80 | opcode, 127]) + length.to_bytes(8, "big")
    return head + payload


def message_frame(data: str | bytes) -> bytes:
    """Write a message as one frame."""
    return frame(TEXT, data.encode("utf-8", "replace")) if isinstance(data, str) else frame(BINARY, data)


def close_frame(code: int, reason: str) -> bytes:
    """Write a close frame; a reason that is too long for it is cut."""
    if code == NO_STATUS:
        return frame(CLOSE, b"")
    text = reason.encode("utf-8")[:123].decode("utf-8", "ignore").encode("utf-8")
    return frame(CLOSE, code.to_bytes(2, "big") + text)


def accept_key(key: str) -> str:
    """Return the `sec-websocket-accept` for the `sec-websocket-key` of a handshake."""
    return base64.b64encode(hashlib.sha1(key.encode() + _GUID).digest()).decode()
