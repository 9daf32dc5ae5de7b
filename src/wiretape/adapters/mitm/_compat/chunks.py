"""Add a hook before each large chunk of a streamed body: mitmproxy has none in which an addon can wait.

`HttpStream` calls an addon's stream function on the event loop, so that a large chunk delays every other call. With
this patch the layer first yields `large_chunk(flow)`, which may be a coroutine: only this stream waits for it. The
chunk is in the flow's metadata. Seen with mitmproxy 12.0 to 12.3; without these methods nothing is patched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final
from weakref import WeakSet

from mitmproxy import http
from mitmproxy.proxy import server
from mitmproxy.proxy.commands import StartHook
from mitmproxy.proxy.layers.http import HttpStream, RequestData, ResponseData

LARGE: Final = 16 * 1024  # bytes; a smaller chunk takes a millisecond or two
CHUNK: Final = "wiretape.chunk"  # flow.metadata: the chunk, and whether the client sent it
_MAX_QUEUED: Final = 32  # chunks of a stream behind a large one; then reading pauses
_POLL_S: Final = 0.002
_waiting_streams: WeakSet[HttpStream] = WeakSet()
_STATES: Final = ("state_stream_request_body", "state_stream_response_body")
_INSTALLED: Final = "wiretape_large_chunks"


@dataclass
class LargeChunkHook(StartHook):  # type: ignore[misc, unused-ignore]
    """A large chunk waits to be passed on."""

    name = "large_chunk"
    flow: http.HTTPFlow


def install() -> None:
    """Patch mitmproxy, once in a process."""
    if getattr(HttpStream, _INSTALLED, False) or not all(hasattr(HttpStream, name) for name in _STATES):
        return
    setattr(HttpStream, _INSTALLED, True)
    for name in _STATES:
        setattr(HttpStream, name, _waiting(getattr(HttpStream, name)))
    if hasattr(server.ConnectionHandler, "drain_writers"):
        server.ConnectionHandler.drain_writers = _with_backpressure(server.ConnectionHandler.drain_writers)


def _waiting(state: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    @wraps(state)
    def stream(self: Any, event: Any) -> Iterator[Any]:
        if isinstance(event, RequestData | ResponseData) and len(event.data) > LARGE:
            self.flow.metadata[CHUNK] = event.data, isinstance(event, RequestData)
            _waiting_streams.add(self)
            yield LargeChunkHook(self.flow)
            _waiting_streams.discard(self)
        yield from state(self, event)

    return stream


def _with_backpressure(drain: Callable[[Any], Awaitable[None]]) -> Callable[[Any], Awaitable[None]]:
    """Pause reading while too many chunks of a stream wait in memory. mitmproxy calls this after each read."""

    async def drained(self: Any) -> None:
        await drain(self)
        while any(
            stream.context.client is self.client and len(getattr(stream, "_paused_event_queue", ())) > _MAX_QUEUED
            for stream in tuple(_waiting_streams)
        ):
            await asyncio.sleep(_POLL_S)

    return drained
