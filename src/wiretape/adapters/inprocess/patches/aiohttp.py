"""The door for aiohttp: its connector, below redirects, cookies and middlewares.

A recorded connection is tapped; a replayed one is a transport that only exists in memory. aiohttp itself parses what
comes, event by event.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from contextvars import ContextVar
from types import ModuleType
from typing import Any

from wiretape.adapters.http1.messages import RequestReader
from wiretape.adapters.http1.sending import LINGER_SECONDS, response_parts
from wiretape.adapters.inprocess.active_context import ActiveContext, route_for
from wiretape.adapters.inprocess.patches.patching import Patch
from wiretape.adapters.inprocess.patches.sockets import WATCH
from wiretape.adapters.inprocess.sockets.socket_server import connect_to_server
from wiretape.adapters.inprocess.sockets.taps import ExchangeTap
from wiretape.errors import MissInterrupt
from wiretape.matching.playback import Playback
from wiretape.matching.values import LiveRequest
from wiretape.model.http import Ended, Headers

# The tape that answers the request for which a connection is being made.
_replaying: ContextVar[ActiveContext | None] = ContextVar("wiretape.aiohttp", default=None)


def patches(module: ModuleType) -> list[Patch]:
    from aiohttp import connector

    return [
        Patch(connector.BaseConnector, "connect", _connect),
        Patch(connector.BaseConnector, "_get", _get),
        Patch(connector.TCPConnector, "_create_connection", _create_connection),
        Patch(connector.TCPConnector, "_resolve_host", _resolve_host),
        Patch(connector.UnixConnector, "_create_connection", _create_connection),
        Patch(connector.NamedPipeConnector, "_create_connection", _create_connection),
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
                tap.failed(error, list(req.headers.items()), getattr(req.body, "_value", b""))
            raise
        finally:
            _replaying.reset(token)
        if route.recording is not None:
            _TappedProtocol(connection.protocol, tap)
        return connection

    return connect


def _url(req: Any) -> str:
    return str(req.url.with_fragment(None))


def _get(original: Callable[..., Any]) -> Callable[..., Any]:
    """A connection from the pool leads to a real server: a replay takes none."""

    async def awaited(connector: Any, *args: Any) -> Any:
        return None if _replaying.get() is not None else await original(connector, *args)

    def called(connector: Any, *args: Any) -> Any:
        return None if _replaying.get() is not None else original(connector, *args)

    return awaited if inspect.iscoroutinefunction(original) else called


def _resolve_host(original: Callable[..., Any]) -> Callable[..., Any]:
    """aiohttp may look names up past Python's sockets (aiodns): who is let through by name is met by address."""

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
        if req.headers.get("Upgrade", "").lower() == "websocket":
            sock = connect_to_server(replaying, _url(req))
            return (await asyncio.get_running_loop().create_connection(connector._factory, sock=sock))[1]
        protocol = connector._factory()
        protocol.connection_made(_MemoryTransport(protocol, replaying, _url(req)))
        return protocol

    return create


class _TappedTransport:
    """A transport whose writes are told. Everything else is the real one's."""

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
    """Stands between a transport and aiohttp's protocol until the exchange is over."""

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
            self._step_aside()

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

    def _step_aside(self) -> None:
        if isinstance(self._real.transport, _TappedTransport):
            self._real.transport = self._transport
        self._transport.set_protocol(self._real)


class _MemoryTransport(asyncio.Transport):
    """Takes a request, and gives what the tape answers to the protocol on this side."""

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
        self._asked = False

    def write(self, data: Any) -> None:
        if self._closing or self._asked:
            return
        self._reader.feed(bytes(data))
        if self._reader.complete:
            self._asked = True
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
            shown = self._replaying.recorded_answer(request)
        except MissInterrupt as miss:  # the body is written by a task of its own: the one that reads must get it
            self._protocol.set_exception(miss)
            return
        playing = self._play(shown) if shown is not None else self._call(request)
        self._playing = asyncio.get_running_loop().create_task(playing)

    async def _call(self, request: LiveRequest) -> None:
        """A live call, in a thread: the program's other tasks go on meanwhile."""
        await self._play(await asyncio.to_thread(self._replaying.call_live, request))

    async def _play(self, shown: Playback) -> None:
        for pause, data in response_parts(shown):
            if pause > 0:
                await asyncio.sleep(pause / 1000)
            await self._reading.wait()
            if data:
                self._protocol.data_received(data)
                await asyncio.sleep(0)  # one event after the other, as from a socket
        if shown.linger:
            await asyncio.sleep(LINGER_SECONDS)
        if shown.ended is Ended.TIMEOUT:
            self._protocol._on_read_timeout()  # as when `sock_read` is over: who reads closes the connection
            return
        self._closing = True
        self._protocol.connection_lost(_broken(shown))


def _broken(shown: Playback) -> Exception | None:
    if shown.ended is Ended.UPSTREAM_UNREACHABLE:
        return ConnectionRefusedError("connection refused (as recorded)")
    return None
