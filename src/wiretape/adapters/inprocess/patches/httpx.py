"""The patch of httpx and httpx2, sync and async: their network transports.

Custom transports and mounts that end in a network transport are patched with it. Transports without a connection
(mocks, ASGI applications) are not. Bodies pass chunk by chunk.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

from wiretape.adapters.http1.send_playback import LINGER_SECONDS
from wiretape.adapters.http1.websocket_replay import handshake_headers
from wiretape.adapters.inprocess.active_context import ActiveContext, RequestRoute, route_for
from wiretape.adapters.inprocess.exchange_recorder import ExchangeRecorder
from wiretape.adapters.inprocess.patches import _compat
from wiretape.adapters.inprocess.patches.patching import Patch
from wiretape.adapters.inprocess.sockets.network_streams import (
    AsyncPlayedStream,
    AsyncTappedStream,
    PlayedStream,
    TappedStream,
)
from wiretape.adapters.inprocess.sockets.socket_server import connect_to_play
from wiretape.adapters.inprocess.sockets.taps import WebSocketTap
from wiretape.matching.playback import Playback
from wiretape.matching.sockets.playing import SocketPlay
from wiretape.matching.values import LiveRequest
from wiretape.model.http import Ended, Headers

_EMPTY = Playback(200, (), ())
_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}


def patches(module: ModuleType) -> list[Patch]:
    patcher = _Patcher(module)
    return [
        Patch(module.HTTPTransport, "handle_request", patcher.sync_handler),
        Patch(module.AsyncHTTPTransport, "handle_async_request", patcher.async_handler),
    ]


class _Patcher:
    """The patches of one of the two libraries, made with its own stream, request, response and error classes."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._teed = type("Teed", (_Teed, module.SyncByteStream, module.AsyncByteStream), {})
        self._played = type("Played", (_Played, module.SyncByteStream, module.AsyncByteStream), {})

    def sync_handler(self, original: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        def handle_request(transport: Any, request: Any) -> Any:
            route = _route(request)
            if route is None:
                return original(transport, request)

            def forward(request: Any) -> Any:
                if route.replaying is None:
                    return original(transport, request)
                request.read()
                answer = _answer(route.replaying, request)
                if answer is None:
                    return live(route.replaying, request)
                if isinstance(answer, SocketPlay):
                    return self._socket(route.replaying, answer, request, PlayedStream)
                stream = self._played(answer, self._module)
                stream.begin()
                return self._response(answer, stream)

            def live(context: ActiveContext, request: Any) -> Any:
                """Send a miss, recorded by the context that replays."""
                return tapped(context.begin_exchange(*_head(request)), request, functools.partial(original, transport))

            def tapped(exchange: ExchangeRecorder | None, request: Any, send: Callable[[Any], Any]) -> Any:
                if exchange is None:
                    return send(request)
                try:
                    response = send(self._teed_request(request, exchange))
                except BaseException as error:
                    exchange.failed(error)
                    raise
                return self._teed_response(response, exchange, TappedStream)

            return tapped(route.begin_exchange(*_head(request)), request, forward)

        return handle_request

    def async_handler(self, original: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        async def handle_async_request(transport: Any, request: Any) -> Any:
            route = _route(request)
            if route is None:
                return await original(transport, request)

            async def forward(request: Any) -> Any:
                if route.replaying is None:
                    return await original(transport, request)
                await request.aread()
                answer = _answer(route.replaying, request)
                if answer is None:
                    return await live(route.replaying, request)
                if isinstance(answer, SocketPlay):
                    return self._socket(route.replaying, answer, request, AsyncPlayedStream)
                stream = self._played(answer, self._module)
                await stream.abegin()
                return self._response(answer, stream)

            async def live(context: ActiveContext, request: Any) -> Any:
                return await tapped(
                    context.begin_exchange(*_head(request)), request, functools.partial(original, transport)
                )

            async def tapped(exchange: ExchangeRecorder | None, request: Any, send: Callable[[Any], Any]) -> Any:
                if exchange is None:
                    return await send(request)
                try:
                    response = await send(self._teed_request(request, exchange))
                except BaseException as error:
                    exchange.failed(error)
                    raise
                return self._teed_response(response, exchange, AsyncTappedStream)

            return await tapped(route.begin_exchange(*_head(request)), request, forward)

        return handle_async_request

    def _response(self, played: Playback, stream: Any) -> Any:
        extensions = {"http_version": b"HTTP/1.1"}
        return self._module.Response(played.status, headers=list(played.headers), stream=stream, extensions=extensions)

    def _teed_request(self, request: Any, exchange: ExchangeRecorder) -> Any:
        if _compat.httpx_is_read(request):
            exchange.sent(request.content)
            exchange.sent_all()
            return request
        stream = self._teed(request.stream, exchange.sent, exchange.sent_all)
        return self._module.Request(
            request.method, request.url, headers=request.headers, stream=stream, extensions=request.extensions
        )

    def _socket(self, context: ActiveContext, play: SocketPlay, request: Any, stream: Callable[..., Any]) -> Any:
        """The answer to a WebSocket handshake, with a network stream for the messages."""
        core = import_module("httpcore" + self._module.__name__.removeprefix("httpx"))
        network = stream(connect_to_play(context, play), (core.ReadError, core.WriteError, core.ReadTimeout))
        headers = handshake_headers(play, Headers(request.headers.multi_items()))
        extensions = {"http_version": b"HTTP/1.1", "network_stream": network}
        return self._module.Response(101, headers=headers, extensions=extensions, stream=self._played(_EMPTY, None))

    def _teed_response(self, response: Any, exchange: ExchangeRecorder, tapped: Callable[..., Any]) -> Any:
        exchange.response(response.status_code, response.headers.multi_items())
        network = response.extensions.get("network_stream")
        if response.status_code == 101 and network is not None:
            tap = WebSocketTap(exchange, response.headers.get("sec-websocket-extensions", ""))
            response.extensions = {**response.extensions, "network_stream": tapped(network, tap)}
            response.stream = self._teed(response.stream, _nothing, _nothing, closed=tap.hung_up)
            return response
        response.stream = self._teed(
            response.stream, exchange.received, exchange.end, exchange.failed, exchange.hung_up
        )
        return response


def _route(request: Any) -> RequestRoute | None:
    return route_for(request.url.host, request.url.port or _PORTS.get(request.url.scheme, 0))


def _head(request: Any) -> tuple[str, str, list[tuple[str, str]]]:
    return request.method, str(request.url), request.headers.multi_items()


def _answer(context: ActiveContext, request: Any) -> Playback | SocketPlay | None:
    headers = Headers(request.headers.multi_items())
    live = LiveRequest(request.method, str(request.url), headers, request.content)
    is_socket = headers.get("upgrade", "").lower() == "websocket"
    return context.open_socket(live) if is_socket else context.recorded_answer(live)


def _nothing(*_: object) -> None:
    pass


class _Teed:
    """A stream that reports its chunks and its end to a recorder."""

    def __init__(
        self,
        stream: Any,
        chunk: Callable[[bytes], None],
        done: Callable[[], None],
        failed: Callable[[BaseException], None] = _nothing,
        closed: Callable[[], None] = _nothing,
    ) -> None:
        self._stream = stream
        self._chunk = chunk
        self._done = done
        self._failed = failed
        self._closed = closed

    def __iter__(self) -> Iterator[bytes]:
        try:
            for data in self._stream:
                self._chunk(data)
                yield data
        except BaseException as error:
            self._failed(error)
            raise
        self._done()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for data in self._stream:
                self._chunk(data)
                yield data
        except BaseException as error:
            self._failed(error)
            raise
        self._done()

    def close(self) -> None:
        try:
            self._stream.close()
        finally:
            self._closed()

    async def aclose(self) -> None:
        try:
            await self._stream.aclose()
        finally:
            self._closed()


class _Played:
    """A recorded answer as a stream. Closing it ends its pauses."""

    def __init__(self, played: Playback, module: Any) -> None:
        self._shown = played
        self._module = module
        self._gone = threading.Event()

    def begin(self) -> None:
        self._pause(self._shown.pause)
        if self._shown.status is None:
            self._linger()
            raise self._broken()

    async def abegin(self) -> None:
        await self._apause(self._shown.pause)
        if self._shown.status is None:
            await self._alinger()
            raise self._broken()

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._shown.pieces:
            self._pause(piece.pause)
            yield piece.data
        if self._shown.cut:
            self._linger()
            raise self._broken()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._shown.pieces:
            await self._apause(piece.pause)
            yield piece.data
        if self._shown.cut:
            await self._alinger()
            raise self._broken()

    def close(self) -> None:
        self._gone.set()

    async def aclose(self) -> None:
        self._gone.set()

    def _pause(self, milliseconds: float) -> None:
        if milliseconds > 0 and self._gone.wait(milliseconds / 1000):
            raise self._module.StreamClosed()

    async def _apause(self, milliseconds: float) -> None:
        if milliseconds > 0:
            import anyio  # the library supports asyncio and trio with it

            await anyio.sleep(milliseconds / 1000)

    def _linger(self) -> None:
        if self._shown.linger:
            self._pause(LINGER_SECONDS * 1000)

    async def _alinger(self) -> None:
        if self._shown.linger:
            await self._apause(LINGER_SECONDS * 1000)

    def _broken(self) -> Exception:
        """The error of the library for this end of a connection."""
        module, played = self._module, self._shown
        error: Exception
        if played.status is not None:
            error = module.RemoteProtocolError(
                "peer closed connection without sending complete message body (incomplete chunked read)"
            )
        elif played.ended is Ended.UPSTREAM_UNREACHABLE:
            error = module.ConnectError("All connection attempts failed (as recorded)")
        else:
            error = module.RemoteProtocolError("Server disconnected without sending a response.")
        if played.ended is Ended.TIMEOUT:
            error = module.ReadTimeout("The read operation timed out (as recorded)")
        return error
