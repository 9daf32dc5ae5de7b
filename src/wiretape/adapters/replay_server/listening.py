"""The replay server's socket, and uvicorn on it. Knows nothing of what is served."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from wiretape.errors import UsageError

if TYPE_CHECKING:
    import uvicorn


# A connection that is closed as idle just when its next request comes loses that, and many clients try none again.
_IDLE_S = 600


def listen(port: int = 0) -> socket.socket:
    """A listening socket on 127.0.0.1; port 0 takes any that is free."""
    # The protocol is named because asyncio turns Nagle's delay off only where it is: else every answer waits 40 ms.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(("127.0.0.1", port))
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            busy = f"port {port} on 127.0.0.1 is in use: choose another with --port, or none for any free one"
            raise UsageError(busy) from None
        raise UsageError(
            f"cannot listen on port {port}: {error.strerror or error}\n  take another one with --port, or leave it out"
        ) from None
    listening.listen(512)
    return listening


async def serve(app: Any, listening: socket.socket, stop: asyncio.Event) -> None:
    """Serve an ASGI app until `stop` is set; connections that are still open then are closed."""
    import uvicorn

    for name in ("uvicorn.error", "uvicorn.access", "uvicorn.asgi"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)  # an answer cut on purpose is no error
    server = uvicorn.Server(_config(app))
    serving = asyncio.ensure_future(server.serve(sockets=[listening]))
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    server.should_exit = True
    if server.started and not server.server_state.connections:  # uvicorn would wait for 0.1 to 0.2 s
        for one in server.servers:
            one.close()
        serving.cancel()
    with suppress(asyncio.CancelledError):
        await serving
    stopping.cancel()


def _config(app: Any) -> uvicorn.Config:
    import uvicorn

    from wiretape.adapters.replay_server.replay_protocol import ReplayProtocol

    return uvicorn.Config(
        app,
        http=ReplayProtocol,
        ws="none",  # the app takes a WebSocket's connection over itself
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=_IDLE_S,
        timeout_graceful_shutdown=1,
    )
