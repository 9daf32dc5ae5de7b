"""Packets that refuse a connection or a datagram, and those that do not."""

from __future__ import annotations

import asyncio
import errno
import socket
from typing import Any

import pytest

from wiretape.adapters.sealed.refused_packets import RefusalWatch, RefusedPacket, refused_packet


def ip(kind: int, source: str, to: str, payload: bytes, options: bytes = b"") -> bytes:
    addresses = bytes(int(part) for part in f"{source}.{to}".split("."))
    head = bytes((0x45 + len(options) // 4, 0, 0, 0, 0, 0, 0, 0, 64, kind, 0, 0)) + addresses
    return head + options + payload


def tcp(flags: int, port: int = 5432, number: int = 0) -> bytes:
    return port.to_bytes(2) + (40000).to_bytes(2) + number.to_bytes(4) + bytes(4) + bytes((0x50, flags)) + bytes(6)


def unreachable(quoted: bytes, code: int = 3, kind: int = 3) -> bytes:
    return bytes((kind, code)) + bytes(6) + quoted


UDP = (40000).to_bytes(2) + (443).to_bytes(2) + bytes(4)


@pytest.mark.parametrize("options", [b"", b"\x94\x04\x00\x00"])
def test_a_reset_of_the_first_packet_is_a_refused_connection(options: bytes) -> None:
    assert refused_packet(ip(6, "10.1.2.3", "127.0.0.1", tcp(0x14), options)) == ("10.1.2.3", 5432, True)


def test_an_undelivered_packet_is_a_refused_datagram() -> None:
    quoted = ip(17, "127.0.0.1", "10.1.2.3", UDP)
    assert refused_packet(ip(1, "10.1.2.3", "127.0.0.1", unreachable(quoted))) == ("10.1.2.3", 443, False)


@pytest.mark.parametrize(
    "other",
    [
        ip(6, "10.1.2.3", "127.0.0.1", tcp(0x14, number=7)),  # a connection that was there, and is cut
        ip(6, "10.1.2.3", "127.0.0.1", tcp(0x04)),
        ip(6, "10.1.2.3", "127.0.0.1", tcp(0x12)),  # accepted
        ip(1, "10.1.2.3", "127.0.0.1", unreachable(ip(17, "127.0.0.1", "10.1.2.3", UDP), code=1)),
        ip(1, "10.1.2.3", "127.0.0.1", unreachable(ip(17, "127.0.0.1", "10.1.2.3", UDP), kind=8)),
        ip(1, "10.1.2.3", "127.0.0.1", unreachable(ip(6, "127.0.0.1", "10.1.2.3", UDP))),
        ip(1, "10.1.2.3", "127.0.0.1", unreachable(ip(17, "127.0.0.1", "10.1.2.3", UDP[:3]))),
        ip(17, "127.0.0.1", "10.1.2.3", UDP),
    ],
)
def test_other_packets_are_not_refusals(other: bytes) -> None:
    assert refused_packet(other) is None


def test_a_packet_that_is_cut_short_is_not_a_refusal() -> None:
    whole = ip(6, "10.1.2.3", "127.0.0.1", tcp(0x14))
    assert [refused_packet(whole[:end]) for end in range(len(whole))] == [None] * len(whole)


class Down(socket.socket):
    """As a packet socket whose interface was taken down."""

    def recvfrom(self, *_: Any) -> Any:
        raise OSError(errno.ENETDOWN, "Network is down")


def test_a_program_that_takes_its_network_down_harms_nothing_else() -> None:
    refused: list[RefusedPacket] = []

    async def watch() -> None:
        with Down() as sock:
            RefusalWatch(sock, refused.append).close()

    asyncio.run(watch())
    assert refused == []
