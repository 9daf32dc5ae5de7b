"""Finds the addresses and ports of a sealed network at which nothing listens, from the packets that refuse a client.

The packets are the only trace of a refused connection: it does not reach a socket of wiretape.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

_ICMP, _TCP, _UDP = 1, 6, 17
_UNREACHABLE, _NO_PORT = 3, 3
_RST_ACK: Final = 0x14
_LOOKUPS: Final = 53
_MAX_PACKET: Final = 2048


class RefusedPacket(NamedTuple):
    """An address and port at which nothing listens. `is_connection`: for a TCP connection; else for a UDP datagram."""

    address: str
    port: int
    is_connection: bool


def refused_packet(packet: bytes) -> RefusedPacket | None:
    """Return what an IPv4 packet refuses; None for other packets."""
    if len(packet) < 20:
        return None
    kind, payload = packet[9], packet[_header_size(packet) :]
    if kind == _TCP and len(payload) >= 20:
        # A reset of the first packet has sequence number 0 (RFC 9293, 3.10.7.1); that of an open connection has not.
        if payload[13] & _RST_ACK == _RST_ACK and payload[4:8] == bytes(4):
            return RefusedPacket(socket.inet_ntoa(packet[12:16]), int.from_bytes(payload[:2], "big"), True)
    elif kind == _ICMP and tuple(payload[:2]) == (_UNREACHABLE, _NO_PORT):
        return _undelivered(payload[8:])
    return None


def _undelivered(packet: bytes) -> RefusedPacket | None:
    """Return the destination of a UDP packet, whose beginning an ICMP error quotes."""
    if len(packet) < 20 or packet[9] != _UDP:
        return None
    header = packet[_header_size(packet) :]
    if len(header) < 4:
        return None
    return RefusedPacket(socket.inet_ntoa(packet[16:20]), int.from_bytes(header[2:4], "big"), False)


def _header_size(packet: bytes) -> int:
    return (packet[0] & 0xF) * 4


class RefusalWatch:
    """Calls `refused` for each refusal while the running loop runs, and for the last ones when it is closed."""

    def __init__(self, packets: socket.socket, refused: Callable[[RefusedPacket], None]) -> None:
        self._packets = packets
        self._refused = refused
        packets.setblocking(False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(packets, self._read)

    def close(self) -> None:
        self._loop.remove_reader(self._packets)
        self._read()

    def _read(self) -> None:
        with suppress(OSError):  # no more packets, or the program has taken its network down
            while True:
                packet, address = self._packets.recvfrom(_MAX_PACKET)
                found = refused_packet(packet)
                # A packet of loopback is seen twice: as it leaves and as it arrives.
                if found is not None and address[2] != socket.PACKET_OUTGOING and found.port != _LOOKUPS:
                    self._refused(found)
