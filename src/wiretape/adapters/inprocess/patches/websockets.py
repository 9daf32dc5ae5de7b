"""The patch of `websockets`: taps its sans-IO protocol, which the asyncio, trio and threading clients share.

A replayed connection is a socket pair whose other end plays the tape.
"""

from __future__ import annotations

import asyncio
import functools
import socket
from collections.abc import Callable
from importlib import import_module
from types import CodeType, FunctionType, ModuleType
from typing import Any

from wiretape.adapters.inprocess.active_context import ActiveContext, route_for
from wiretape.adapters.inprocess.patches.patching import Patch
from wiretape.adapters.inprocess.sockets.socket_server import connect_to_server
from wiretape.adapters.inprocess.sockets.taps import ExchangeTap
from wiretape.model.http import bracketed

_TAP = "_wiretape_tap"  # an attribute of protocols


def patches(module: ModuleType) -> list[Patch]:
    match module.__name__:
        case "websockets.protocol":
            return [
                Patch(module.Protocol, "data_to_send", _data_to_send),
                Patch(module.Protocol, "receive_data", _receive_data),
                Patch(module.Protocol, "receive_eof", _receive_eof),
            ]
        case "websockets.asyncio.client":
            name = "open_tcp_connection" if hasattr(module.connect, "open_tcp_connection") else "create_connection"
            return [Patch(module.connect, name, _open_async)]
        case "websockets.trio.client":
            return [
                Patch(module.connect, "open_tcp_stream", _open_trio),
                Patch(module.connect, "enable_tls", _enable_tls_trio),
            ]
    if hasattr(module, "reconnect"):
        return [
            Patch(module.reconnect, "open_socket", _open_socket),
            Patch(module.reconnect, "enable_tls", _enable_tls),
        ]
    return [Patch(module.connect, "__code__", functools.partial(_connect_code, module.connect))]


# recording


def _data_to_send(original: Callable[[Any], list[bytes]]) -> Callable[[Any], list[bytes]]:
    def data_to_send(protocol: Any) -> list[bytes]:
        data = original(protocol)
        tap = _tap(protocol)
        if tap is not None:
            for part in data:
                tap.sent(part)
        return data

    return data_to_send


def _receive_data(original: Callable[[Any, bytes], None]) -> Callable[[Any, bytes], None]:
    def receive_data(protocol: Any, data: bytes) -> None:
        tap = _tap(protocol)
        if tap is not None:
            tap.received(data)
        original(protocol, data)

    return receive_data


def _receive_eof(original: Callable[[Any], None]) -> Callable[[Any], None]:
    def receive_eof(protocol: Any) -> None:
        tap = _tap(protocol)
        if tap is not None:
            tap.eof()
        original(protocol)

    return receive_eof


def _tap(protocol: Any) -> ExchangeTap | None:
    """The tap of a client connection that began inside a recording."""
    if _TAP not in protocol.__dict__:
        protocol.__dict__[_TAP] = _new_tap(protocol)
    made: ExchangeTap | None = protocol.__dict__[_TAP]
    return made


def _new_tap(protocol: Any) -> ExchangeTap | None:
    uri = getattr(protocol, "uri", None) or getattr(protocol, "wsuri", None)
    if uri is None:  # the protocol of a server
        return None
    route = route_for(uri.host, uri.port, count=False)
    if route is None or route.recording is None:
        return None
    return ExchangeTap("GET", lambda headers: route.begin_exchange("GET", _url(uri), headers))


def _url(uri: Any) -> str:
    host = bracketed(uri.host)
    port = "" if uri.port == (443 if uri.secure else 80) else f":{uri.port}"
    return f"{'https' if uri.secure else 'http'}://{host}{port}{uri.resource_name}"


# replaying


def _replaying(uri: Any) -> ActiveContext | None:
    route = route_for(uri.host, uri.port)
    return route.replaying if route is not None else None


def _uri(connector: Any) -> Any:
    from websockets.uri import parse_uri

    return getattr(connector, "ws_uri", None) or parse_uri(connector.uri)


def _open_async(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    async def open_connection(connector: Any) -> Any:
        uri = _uri(connector)
        context = _replaying(uri)
        if context is None:
            return await original(connector)
        factory = getattr(connector, "factory", None) or connector.protocol_factory
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(lambda: factory(uri), sock=connect_to_server(context, _url(uri)))
        return connection

    return open_connection


def _open_socket(original: Callable[..., Any]) -> Callable[..., Any]:
    def open_socket(connector: Any, *args: Any, **kwargs: Any) -> Any:
        context = _replaying(_uri(connector))
        connector.__dict__[_TAP] = context is not None
        return (
            original(connector, *args, **kwargs)
            if context is None
            else connect_to_server(context, _url(_uri(connector)))
        )

    return open_socket


def _enable_tls(original: Callable[..., Any]) -> Callable[..., Any]:
    def enable_tls(connector: Any, sock: Any, *args: Any, **kwargs: Any) -> Any:
        return sock if connector.__dict__.get(_TAP) else original(connector, sock, *args, **kwargs)

    return enable_tls


def _open_trio(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    async def open_tcp_stream(connector: Any) -> Any:
        context = _replaying(connector.ws_uri)
        connector.__dict__[_TAP] = context is not None
        if context is None:
            return await original(connector)
        trio = import_module("trio")
        return trio.SocketStream(trio.socket.from_stdlib_socket(connect_to_server(context, _url(connector.ws_uri))))

    return open_tcp_stream


def _enable_tls_trio(original: Callable[..., Any]) -> Callable[..., Any]:
    async def enable_tls(connector: Any, stream: Any) -> Any:
        return stream if connector.__dict__.get(_TAP) else await original(connector, stream)

    return enable_tls


class _NoTls:
    """Replaces an SSL context: the socket is connected to this process."""

    def wrap_socket(self, sock: Any, **kwargs: Any) -> Any:
        return sock


class _Pair(socket.socket):
    """An end of a socket pair that accepts, and ignores, options of TCP."""

    def setsockopt(self, level: int, *option: Any) -> None:
        if level != socket.IPPROTO_TCP:
            super().setsockopt(level, *option)


class _OldConnect:
    """The threading client's `connect` in old versions, where it is a function."""

    original: Callable[..., Any]  # the function without the patch

    @classmethod
    def called(cls, uri: str, named: dict[str, Any]) -> Any:
        from websockets.uri import parse_uri

        parsed = parse_uri(uri)
        unconnected = named.get("sock") is None and not named.get("unix")
        context = _replaying(parsed) if unconnected else None
        if context is None:
            return cls.original(uri, **named)
        tls = {"ssl": _NoTls()} if parsed.secure else {}
        sock = _Pair(fileno=connect_to_server(context, _url(parsed)).detach())
        return cls.original(uri, **{**named, **tls, "sock": sock})


def _connect_code(function: FunctionType, code: CodeType) -> CodeType:
    """New code for the function: a program that imported it by name would not see a new function in its module."""
    _OldConnect.original = FunctionType(code, function.__globals__, function.__name__, function.__defaults__)
    _OldConnect.original.__kwdefaults__ = function.__kwdefaults__

    def connect(uri: str, **named: Any) -> Any:  # runs with the globals of its module, not of this one
        from wiretape.adapters.inprocess.patches.websockets import _OldConnect

        return _OldConnect.called(uri, named)

    return connect.__code__
