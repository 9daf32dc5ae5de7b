"""The first message of TLS, as far as it tells whom a client means to speak to (RFC 8446, 4.1.2; RFC 6066, 3)."""

from __future__ import annotations

HANDSHAKE = 0x16
_CLIENT_HELLO = 1
_SERVER_NAME = 0


class _Reader:
    """Takes fields off a message. ValueError: it ends before."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        if len(taken) < size:
            raise ValueError("the message is cut short")
        self._at += size
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def field(self, size: int) -> bytes:
        """Bytes behind their length, itself `size` bytes."""
        return self.take(self.number(size))

    @property
    def over(self) -> bool:
        return self._at >= len(self._data)


def missing(begun: bytes) -> int:
    """How many bytes, at the least, a first record still lacks."""
    if len(begun) < 5:
        return 5 - len(begun)
    return max(0, 5 + int.from_bytes(begun[3:5], "big") - len(begun))


def server_name(record: bytes) -> str | None:
    """The name in a client's first record; None where it gives none, or is none of TLS."""
    try:
        return _name(record)
    except (ValueError, UnicodeDecodeError):
        return None


def _name(record: bytes) -> str | None:
    outer = _Reader(record)
    if outer.number(1) != HANDSHAKE:
        return None
    outer.take(2)
    message = _Reader(outer.field(2))
    if message.number(1) != _CLIENT_HELLO:
        return None
    hello = _Reader(message.field(3))
    hello.take(2 + 32)  # version, random
    for size in (1, 2, 1):  # session, ciphers, compressions
        hello.field(size)
    extensions = _Reader(hello.field(2))
    while not extensions.over:
        kind, value = extensions.number(2), extensions.field(2)
        if kind == _SERVER_NAME:
            names = _Reader(_Reader(value).field(2))
            return names.field(2).decode("ascii").lower() if names.number(1) == 0 else None
    return None
