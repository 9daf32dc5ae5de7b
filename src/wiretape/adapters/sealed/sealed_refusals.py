"""What a sealed program tried where nothing is: read off the packets that its network answered it with.

A connection that is refused leaves no other trace: no socket of ours was asked.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

_ICMP, _TCP, _UDP = 1, 6, 17
_UNREACHABLE, _NO_PORT = 3, 3
_RST_ACK = 0x14
_LOOKUPS = 53
_MOST = 2048


class Refusal(NamedTuple):
    """Where nobody listens. `connected`: a connection was tried; else a datagram was sent."""

    address: str
    port: int
    connected: bool


def refusal(packet: bytes) -> Refusal | None:
    """What an IPv4 packet says that nobody listens at; None: it says nothing of the kind."""
    if len(packet) < 20:
        return None
    kind, payload = packet[9], packet[_header(packet) :]
    if kind == _TCP and len(payload) >= 20:
        # The answer to a first packet has no number of its own (RFC 9293, 3.10.7.1); a connection that ends so has one.
        if payload[13] & _RST_ACK == _RST_ACK and payload[4:8] == bytes(4):
            return Refusal(socket.inet_ntoa(packet[12:16]), int.from_bytes(payload[:2], "big"), True)
    elif kind == _ICMP and tuple(payload[:2]) == (_UNREACHABLE, _NO_PORT):
        return _undelivered(payload[8:])
    return None


def _undelivered(packet: bytes) -> Refusal | None:
    """Where a packet of UDP was to go, of which an error quotes the beginning."""
    if len(packet) < 20 or packet[9] != _UDP:
        return None
    header = packet[_header(packet) :]
    if len(header) < 4:
        return None
    return Refusal(socket.inet_ntoa(packet[16:20]), int.from_bytes(header[2:4], "big"), False)


def _header(packet: bytes) -> int:
    return (packet[0] & 0xF) * 4


class Refusals:
    """Tells of refusals while the running loop runs, and of the last ones when it is closed."""

    def __init__(self, listening: socket.socket, refused: Callable[[Refusal], None]) -> None:
        self._listening = listening
        self._refused = refused
        listening.setblocking(False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(listening, self._read)

    def close(self) -> None:
        self._loop.remove_reader(self._listening)
        self._read()

    def _read(self) -> None:
        with suppress(OSError):  # nothing more has come, or the program has taken its network down
            while True:
                packet, came = self._listening.recvfrom(_MOST)
                found = refusal(packet)
                # A packet of loopback is seen as it goes and as it comes.
                if found is not None and came[2] != socket.PACKET_OUTGOING and found.port != _LOOKUPS:
                    self._refused(found)
