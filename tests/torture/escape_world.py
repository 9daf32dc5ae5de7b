"""The outside network of the escape campaign: every name resolves to it, and it logs all connections.

Runs inside a separate network namespace; its argument is the path of the log.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import TextIO

ADDRESSES = ("10.99.0.1", "fd99::1")
TCP_PORTS = (80, 443, 5432)
UDP_PORT = 9999


class Datagrams(asyncio.DatagramProtocol):
    """Logs datagrams. `answers`: they are look-ups of names, and this machine is the answer."""

    def __init__(self, log: TextIO, answers: bool = False) -> None:
        self._log = log
        self._answers = answers

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        if not self._answers:
            self._log.write(f"UDP {data[:40]!r}\n")
            return
        labels, at = [], 12
        while data[at]:
            labels.append(data[at + 1 : at + 1 + data[at]].decode("latin-1"))
            at += 1 + data[at]
        kind = int.from_bytes(data[at + 1 : at + 3])
        self._log.write(f"DNS {'.'.join(labels)} {kind}\n")
        found = {
            1: b"\x00\x01\x00\x01\x00\x00\x00\x05\x00\x04" + socket.inet_aton(ADDRESSES[0]),
            28: b"\x00\x1c\x00\x01\x00\x00\x00\x05\x00\x10" + socket.inet_pton(socket.AF_INET6, ADDRESSES[1]),
        }.get(kind)
        counts = b"\x00\x01" + (b"\x00\x01" if found else b"\x00\x00") + b"\x00\x00\x00\x00"
        answer = b"\xc0\x0c" + found if found else b""
        self._transport.sendto(data[:2] + b"\x81\x80" + counts + data[12 : at + 5] + answer, address)  # type: ignore[attr-defined]


async def serve(log: TextIO) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = writer.get_extra_info("sockname")[1]
        log.write(f"TCP {port}\n")
        try:
            data = await asyncio.wait_for(reader.read(200), 1)
            if data[:4] in (b"GET ", b"POST"):
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\nREAL")
                await writer.drain()
        except (OSError, TimeoutError):
            pass
        writer.close()

    loop = asyncio.get_running_loop()
    for address in ADDRESSES:
        for port in TCP_PORTS:
            await asyncio.start_server(talk, address, port)
        for port in (UDP_PORT, 443):
            await loop.create_datagram_endpoint(lambda: Datagrams(log), local_addr=(address, port))
    await loop.create_datagram_endpoint(lambda: Datagrams(log, answers=True), local_addr=(ADDRESSES[0], 53))
    log.write("READY\n")
    await asyncio.sleep(3600)


if __name__ == "__main__":
    with open(sys.argv[1], "a", buffering=1) as opened:
        asyncio.run(serve(opened))
