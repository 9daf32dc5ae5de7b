"""A forward proxy such as companies have: it tunnels, forwards absolute-form requests, and notes what it was asked."""

from __future__ import annotations

import asyncio
import threading
from urllib.parse import urlsplit


class CorporateProxy:
    """Every host name leads to 127.0.0.1, as if this proxy could resolve what others cannot."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str | None]] = []  # method, target, proxy-authorization
        self.port = 0

    def __enter__(self) -> CorporateProxy:
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
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
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, first: bytes) -> None:
        there, onward = await asyncio.open_connection("127.0.0.1", port)
        onward.write(first)

        async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            while data := await source.read(65536):
                sink.write(data)
                await sink.drain()
            sink.close()

        await asyncio.gather(pump(reader, onward), pump(there, writer), return_exceptions=True)
        onward.close()
