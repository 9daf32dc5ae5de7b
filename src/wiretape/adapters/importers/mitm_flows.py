"""Imports mitmproxy's flow files: HTTP and WebSockets. Needs mitmproxy itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wiretape.adapters.importers.bodies import clean, cut_short, http_version, received_body, sent_body
from wiretape.adapters.importers.documents import ImportRefused
from wiretape.adapters.importers.source import ImportedExchange, ParsedEntry, RefusedEntry, Source, one
from wiretape.model.http import Body, BytesBody, Close, Ended, Exchange, Headers, Request, Response, TextBody, WsMessage
from wiretape.tape.format.bodies import plain_body

TITLE = "mitmproxy"


def read(source: Source) -> Iterator[ImportedExchange | RefusedEntry]:
    """Yield every flow, one at a time. A truncated file yields the flows before the end."""
    try:
        from mitmproxy import exceptions
        from mitmproxy.io import FlowReader
    except ImportError:
        raise ImportRefused(
            "is a flow file of mitmproxy, which reads it and is not installed: "
            "pip install '.[proxy]' in wiretape's own folder (Python 3.12 or later), or save it as HAR there"
        ) from None
    number = 0
    with source.open() as file:
        flows = FlowReader(file).stream()
        while True:
            number += 1
            try:
                flow = next(flows, None)
            except (exceptions.FlowReadException, ValueError, TypeError, LookupError, AttributeError) as error:
                yield RefusedEntry(source.name, number, f"cannot be read, nor what follows it: {error}", TITLE)
                return
            if flow is None:
                return
            yield one(source, TITLE, number, flow, _recorded)


def _recorded(flow: Any) -> ParsedEntry:
    if flow.type != "http":
        raise ImportRefused(f"is not an HTTP exchange ({flow.type})")
    asked = flow.request
    if asked.method == "CONNECT":
        raise ImportRefused("is not an HTTP exchange (CONNECT)")
    start = asked.timestamp_start
    headers = _headers(asked.headers)
    if asked.raw_content is None:
        raise ImportRefused("its request was streamed through mitmproxy, and the file does not have its body")
    body = sent_body(asked.raw_content, headers)
    request = Request(clean(asked.method), clean(asked.url), headers, body, http_version(asked.http_version))
    return ParsedEntry(_answered(flow, request, start), start)


def _answered(flow: Any, request: Request, start: float) -> Exchange:
    response, error = _response(flow, start), flow.error
    if response is None:
        over = Ended.UPSTREAM_UNREACHABLE if flow.server_conn.timestamp_tcp_setup is None else Ended.UPSTREAM_CLOSED
        end = _since(start, error.timestamp if error else None)
        return Exchange(0, 0, request, None, _who(error, over), end)
    end = _since(start, flow.response.timestamp_end or (error.timestamp if error else None)) or response.headers_at
    if flow.websocket is not None:
        return _websocket(flow, Exchange(0, 0, request, response, Ended.COMPLETE, end), start)
    ended = Ended.UPSTREAM_CLOSED if cut_short(flow.response.raw_content, response.headers) else Ended.COMPLETE
    return Exchange(0, 0, request, response, _who(error, Ended.UPSTREAM_CLOSED) if error else ended, end)


def _who(error: Any, otherwise: Ended) -> Ended:
    message = error.msg.lower() if error else ""
    return Ended.CLIENT_CLOSED if "client disconnected" in message or "by client" in message else otherwise


def _response(flow: Any, start: float) -> Response | None:
    answered = flow.response
    if answered is None:
        return None
    headers = _headers(answered.headers)
    if answered.raw_content is None:
        raise ImportRefused("its response was streamed through mitmproxy, and the file does not have its body")
    head = _since(start, answered.timestamp_start)
    body = received_body(answered.raw_content, headers)
    trailers = _headers(answered.trailers) if answered.trailers else None
    return Response(answered.status_code, headers, head, body, trailers)


def _websocket(flow: Any, exchange: Exchange, start: float) -> Exchange:
    from dataclasses import replace

    socket = flow.websocket
    messages = tuple(
        WsMessage(_since(start, m.timestamp), "client" if m.from_client else "server", _message(m))
        for m in socket.messages
    )
    end = _since(start, socket.timestamp_end) or (messages[-1].at if messages else exchange.ended_at or 0)
    exchange = replace(exchange, messages=messages, ended_at=end)
    by_client = bool(socket.closed_by_client)
    if socket.close_code in (None, 1006):
        return replace(exchange, ended=Ended.CLIENT_CLOSED if by_client else Ended.UPSTREAM_CLOSED)
    close = Close(socket.close_code, clean(socket.close_reason or ""), "client" if by_client else "server")
    return replace(exchange, close=close)


def _message(message: Any) -> Body:
    if not message.is_text:
        return BytesBody(message.content)
    return plain_body(message.content) or TextBody("")


def _headers(headers: Any) -> Headers:
    return Headers((clean(name.decode("latin-1")), _value(value)) for name, value in headers.fields)


def _value(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _since(start: float, when: float | None) -> int:
    return 0 if when is None else max(0, round((when - start) * 1000))
