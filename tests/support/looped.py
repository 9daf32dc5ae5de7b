"""A server on loopback with its own thread and event loop, as a context manager."""

from __future__ import annotations

import asyncio
import ssl
import sys
import threading
from typing import Self
from weakref import WeakSet


class LoopedServer:
    """`talk` is what a connection is. `tls` must be set before it is entered, `port` is known afterwards."""

    tls: ssl.SSLContext | None = None
    port: int = 0

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Speak to one client; the connection is closed behind it."""
        raise NotImplementedError

    def went_away(self) -> None:
        """A client broke its connection off."""

    def started(self) -> None:
        """Called on the loop before the first connection."""

    def __enter__(self) -> Self:
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        assert self._ready.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(30)

    def on_loop(self, act: object) -> None:
        """Do something on the server's loop."""
        self._loop.call_soon_threadsafe(act)  # type: ignore[arg-type]

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: WeakSet[asyncio.StreamWriter] = WeakSet()
        self.started()
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self.tls)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        await self._settle()  # a connection that was just accepted gets its task
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in list(self._writers):  # of clients that were killed: they leave what they were sent unread
            writer.transport.abort()
        if sys.version_info >= (3, 13):
            server.abort_clients()
        await self._settle()

    @staticmethod
    async def _settle() -> None:
        for _ in range(4):
            await asyncio.sleep(0)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            await self.talk(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            self.went_away()
        except asyncio.CancelledError:
            pass
        finally:
            self._tasks.discard(task)
            writer.close()
