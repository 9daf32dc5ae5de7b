"""The patch of aiohttp: its connectors, below redirects, cookies and middlewares.

A recorded connection is tapped. A replayed connection is a transport in memory, whose bytes aiohttp parses itself.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from contextvars import ContextVar
from types import ModuleType
from typing import Any

from wiretape.adapters.http1.messages import RequestReader
from wiretape.adapters.http1.send_playback import LINGER_SECONDS, response_parts
from wiretape.adapters.inprocess.active_context import ActiveContext, route_for
from wiretape.adapters.inprocess.patches import _compat
from wiretape.adapters.inprocess.patches.patching import Patch
from wiretape.adapters.inprocess.patches.sockets import WATCH
from wiretape.adapters.inprocess.sockets.socket_server import connect_to_server
from wiretape.adapters.inprocess.sockets.taps import ExchangeTap
from wiretape.errors import MissInterrupt
from wiretape.matching.playback import Playback
from wiretape.matching.values import LiveRequest
from wiretape.model.http import Ended, Headers

# The context that answers the request for which aiohttp opens a connection now.
_replaying: ContextVar[ActiveContext | None] = ContextVar("wiretape.aiohttp", default=None)


def patches(module: ModuleType) -> list[Patch]:
    from aiohttp import connector

    return [
        Patch(connector.BaseConnector, "connect", _connect),
        Patch(connector.BaseConnector, _compat.AIOHTTP_POOL, _pooled),
        Patch(connector.TCPConnector, _compat.AIOHTTP_CONNECT, _create_connection),
        Patch(connector.TCPConnector, _compat.AIOHTTP_RESOLVE, _resolve_host),
        Patch(connector.UnixConnector, _compat.AIOHTTP_CONNECT, _create_connection),
        Patch(connector.NamedPipeConnector, _compat.AIOHTTP_CONNECT, _create_connection),
    ]


def _connect(original: Callable[..., Any]) -> Callable[..., Any]:
    async def connect(connector: Any, req: Any, *args: Any, **kwargs: Any) -> Any:
        route = route_for(req.url.raw_host or "", req.url.port or 0)
        if route is None:
            return await original(connector, req, *args, **kwargs)
        tap = ExchangeTap(req.method, lambda sent: route.begin_exchange(req.method, _url(req), sent))
        token = _replaying.set(route.replaying)
        try:
            connection = await original(connector, req, *args, **kwargs)
        except BaseException as error:
            if route.recording is not None:
                tap.failed(error, list(req.headers.items()), _compat.aiohttp_body(req.body))
            raise
        finally:
            _replaying.reset(token)
        if route.recording is not None:
            _TappedProtocol(connection.protocol, tap)
        return connection

    return connect


def _url(req: Any) -> str:
    return str(req.url.with_fragment(None))


def _pooled(original: Callable[..., Any]) -> Callable[..., Any]:
    """A connection in the pool is real: a replay uses none."""

    async def awaited(connector: Any, *args: Any) -> Any:
        return None if _replaying.get() is not None else await original(connector, *args)

    def called(connector: Any, *args: Any) -> Any:
        return None if _replaying.get() is not None else original(connector, *args)

    return awaited if inspect.iscoroutinefunction(original) else called


def _resolve_host(original: Callable[..., Any]) -> Callable[..., Any]:
    """Note the addresses of a name: aiohttp may resolve it without Python's sockets (aiodns)."""

    async def resolve(connector: Any, host: str, *args: Any, **kwargs: Any) -> Any:
        found = await original(connector, host, *args, **kwargs)
        for one in found:
            WATCH.found(one["host"], host)
        return found

    return resolve


def _create_connection(original: Callable[..., Any]) -> Callable[..., Any]:
    async def create(connector: Any, req: Any, *args: Any, **kwargs: Any) -> Any:
        replaying = _replaying.get()
        if replaying is None:
            return await original(connector, req, *args, **kwargs)
        factory = _compat.aiohttp_protocol_factory(connector)
        if req.headers.get("Upgrade", "").lower() == "websocket":
            sock = connect_to_server(replaying, _url(req))
            return (await asyncio.get_running_loop().create_connection(factory, sock=sock))[1]
        protocol = factory()
        protocol.connection_made(_MemoryTransport(protocol, replaying, _url(req)))
        return protocol

    return create


class _TappedTransport:
    """A transport that taps its writes, and passes everything else to the real one."""

    def __init__(self, real: Any, tap: ExchangeTap) -> None:
        self.real = real
        self._tap = tap

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def write(self, data: Any) -> None:
        self._tap.sent(data)
        self.real.write(data)

    def writelines(self, parts: Any) -> None:
        self.write(b"".join(parts))

    def close(self) -> None:
        self._tap.hung_up()
        self.real.close()

    def abort(self) -> None:
        self._tap.hung_up()
        self.real.abort()


class _TappedProtocol(asyncio.Protocol):
    """A protocol between a transport and the protocol of aiohttp, until the exchange ends."""

    def __init__(self, real: Any, tap: ExchangeTap) -> None:
        self._real = real
        self._tap = tap
        self._transport = real.transport
        real.transport = _TappedTransport(self._transport, tap)
        self._transport.set_protocol(self)

    def data_received(self, data: bytes) -> None:
        self._tap.received(data)
        self._real.data_received(data)
        if self._tap.over:
            self._remove()

    def eof_received(self) -> bool | None:
        result: bool | None = self._real.eof_received()
        return result

    def connection_lost(self, error: Exception | None) -> None:
        self._tap.eof(error)
        self._real.connection_lost(error)

    def pause_writing(self) -> None:
        self._real.pause_writing()

    def resume_writing(self) -> None:
        self._real.resume_writing()

    def _remove(self) -> None:
        if isinstance(self._real.transport, _TappedTransport):
            self._real.transport = self._transport
        self._transport.set_protocol(self._real)


class _MemoryTransport(asyncio.Transport):
    """A transport in memory: reads a request, and writes the recorded answer to the protocol of aiohttp."""

    def __init__(self, protocol: Any, replaying: ActiveContext, url: str) -> None:
        super().__init__({})
        self._protocol = protocol
        self._replaying = replaying
        self._url = url
        self._body: list[bytes] = []
        self._reader = RequestReader(self._body.append)
        self._reading = asyncio.Event()
        self._reading.set()
        self._playing: asyncio.Task[None] | None = None
        self._closing = False
        self._complete = False

    def write(self, data: Any) -> None:
        if self._closing or self._complete:
            return
        self._reader.feed(bytes(data))
        if self._reader.complete:
            self._complete = True
            self._answer()

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        self._reading.clear()

    def resume_reading(self) -> None:
        self._reading.set()

    def is_closing(self) -> bool:
        return self._closing

    def set_protocol(self, protocol: Any) -> None:
        self._protocol = protocol

    def get_protocol(self) -> Any:
        return self._protocol

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            if self._playing is not None:
                self._playing.cancel()
            asyncio.get_running_loop().call_soon(self._protocol.connection_lost, None)

    def abort(self) -> None:
        self.close()

    def _answer(self) -> None:
        reader = self._reader
        request = LiveRequest(reader.method, self._url, Headers(reader.headers), b"".join(self._body))
        try:
            played = self._replaying.recorded_answer(request)
        except MissInterrupt as miss:  # raised in the task that reads: another task writes the body
            self._protocol.set_exception(miss)
            return
        playing = self._play(played) if played is not None else self._call(request)
        self._playing = asyncio.get_running_loop().create_task(playing)

    async def _call(self, request: LiveRequest) -> None:
        """Call a request live, in a thread, so that other tasks of the program continue."""
        await self._play(await asyncio.to_thread(self._replaying.call_live, request))

    async def _play(self, played: Playback) -> None:
        for pause, data in response_parts(played):
            if pause > 0:
                await asyncio.sleep(pause / 1000)
            await self._reading.wait()
            if data:
                self._protocol.data_received(data)
                await asyncio.sleep(0)  # one event at a time, as from a socket
        if played.linger:
            await asyncio.sleep(LINGER_SECONDS)
        if played.ended is Ended.TIMEOUT:
            _compat.aiohttp_time_out(self._protocol)
            return
        self._closing = True
        self._protocol.connection_lost(_error(played))


def _error(played: Playback) -> Exception | None:
    if played.ended is Ended.UPSTREAM_UNREACHABLE:
        return ConnectionRefusedError("connection refused (as recorded)")
    return None
