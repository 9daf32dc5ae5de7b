"""An upstream that speaks HTTP/2 over TLS: one stream of events, reset or held open by what the path says."""

from __future__ import annotations

import asyncio
import ssl
import threading
from typing import Any


class H2Upstream:
    """`/ok` streams two events, `/reset` resets after the first, `/held` waits after it for the client's reset."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        tls.set_alpn_protocols(["h2"])
        self._tls = tls
        self.port = 0
        self.reset_by_client = threading.Event()
        self.bodies: list[bytes] = []

    def __enter__(self) -> H2Upstream:
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
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._tls)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from h2.config import H2Configuration
        from h2.connection import H2Connection

        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        connection: Any = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        connection.initiate_connection()
        writer.write(connection.data_to_send())
        paths: dict[int, str] = {}
        bodies: dict[int, bytes] = {}
        try:
            while data := await reader.read(65536):
                for event in connection.receive_data(data):
                    self._react(connection, event, paths, bodies)
                writer.write(connection.data_to_send())
        except (ConnectionError, asyncio.CancelledError, ssl.SSLError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    def _react(self, connection: Any, event: Any, paths: dict[int, str], bodies: dict[int, bytes]) -> None:
        from h2 import events
        from h2.errors import ErrorCodes

        match event:
            case events.RequestReceived():
                paths[event.stream_id] = dict(event.headers)[":path"]
                bodies[event.stream_id] = b""
            case events.DataReceived():
                bodies[event.stream_id] += event.data
                connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            case events.StreamEnded():
                stream, path = event.stream_id, paths[event.stream_id]
                self.bodies.append(bodies[stream])
                connection.send_headers(stream, [(":status", "200"), ("content-type", "text/event-stream")])
                connection.send_data(stream, b"data: 1\n\n")
                if path == "/ok":
                    connection.send_data(stream, b"data: 2\n\n", end_stream=True)
                elif path == "/reset":
                    connection.reset_stream(stream, ErrorCodes.INTERNAL_ERROR)
            case events.StreamReset():
                self.reset_by_client.set()
