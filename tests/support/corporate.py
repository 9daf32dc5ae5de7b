"""A forward proxy like those of companies: it tunnels, forwards absolute-form requests, and logs both."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

from tests.support.looped import LoopedServer


class CorporateProxy(LoopedServer):
    """Resolve every host name to 127.0.0.1, like a proxy that knows internal names."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str | None]] = []  # method, target, proxy-authorization

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        line, *fields = head.decode("latin-1").rstrip("\r\n").split("\r\n")
        method, target, _ = line.split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (f.partition(":") for f in fields)}
        self.asked.append((method, target, headers.get("proxy-authorization")))
        if method == "CONNECT":
            port = int(target.rpartition(":")[2])
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            first = b""
        else:
            url = urlsplit(target)
            port = url.port or 80
            path = url.path + (f"?{url.query}" if url.query else "")
            first = "\r\n".join([f"{method} {path} HTTP/1.1", *fields, "", ""]).encode("latin-1")
        await self._join(reader, writer, port, first)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, first: bytes) -> None:
        there, onward = await asyncio.open_connection("127.0.0.1", port)

        async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            while data := await source.read(65536):
                sink.write(data)
                await sink.drain()
            sink.close()

        try:
            onward.write(first)
            await asyncio.gather(pump(reader, onward), pump(there, writer), return_exceptions=True)
        finally:  # the server may end while the tunnel is open
            onward.close()
