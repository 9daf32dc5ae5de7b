"""An upstream with HTTP/2 over TLS: a stream of events that is reset or held open, depending on the path."""

from __future__ import annotations

import asyncio
import ssl
import threading
from typing import Any

from tests.support.looped import LoopedServer

# Paths with a GOAWAY between two events: the last stream (0: this one) and the error.
_ANNOUNCED = {"/drain": [(0, 0)], "/drain-twice": [(2**31 - 1, 0), (0, 0)], "/refuse": [(0, 1)]}


class H2Upstream(LoopedServer):
    """`/ok` streams two events, `/reset` resets after the first, `/held` waits after it for the client's reset.

    `/drain` announces between the two that the server ends the connection; `/drain-twice` does so in two steps;
    `/refuse` ends the connection with an error there.
    """

    def __init__(self, tls: ssl.SSLContext) -> None:
        tls.set_alpn_protocols(["h2"])
        self.tls = tls
        self.reset_by_client = threading.Event()
        self.bodies: list[bytes] = []
        self.connections = 0

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from h2.config import H2Configuration
        from h2.connection import H2Connection
        from h2.events import StreamEnded
        from hyperframe.frame import GoAwayFrame

        self.connections += 1
        connection: Any = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        connection.initiate_connection()
        writer.write(connection.data_to_send())
        paths: dict[int, str] = {}
        bodies: dict[int, bytes] = {}
        while data := await reader.read(65536):
            for event in connection.receive_data(data):
                self._react(connection, event, paths, bodies)
                if isinstance(event, StreamEnded) and (announced := _ANNOUNCED.get(paths[event.stream_id])):
                    writer.write(connection.data_to_send())
                    for last, error in announced:
                        frame = GoAwayFrame(last_stream_id=last or event.stream_id, error_code=error)
                        writer.write(frame.serialize())
                    connection.send_data(event.stream_id, b"data: 2\n\n", end_stream=True)
            writer.write(connection.data_to_send())

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
