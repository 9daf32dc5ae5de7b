"""Exports exchanges as HAR 1.2, which Chrome's DevTools and mitmproxy load.

The member `_wiretape` has what HAR cannot express: how an exchange ended, the times of frames, trailers, a close. Other
readers ignore it; `wiretape import` reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from http import HTTPStatus
from urllib.parse import parse_qsl, quote, urlsplit

import orjson

from wiretape._version import __version__
from wiretape.adapters.importers.har import OURS
from wiretape.adapters.importers.vcr import UNKNOWN_URL
from wiretape.model.http import (
    Body,
    BytesBody,
    Ended,
    Exchange,
    Headers,
    Request,
    Response,
    StreamBody,
    WsMessage,
    body_bytes,
)
from wiretape.model.jsonvalue import JsonObject
from wiretape.tape.format.frames import to_base64
from wiretape.tape.reading.reader import Tape

_VERSIONS = {"1.0": "HTTP/1.0", "1.1": "HTTP/1.1", "2": "HTTP/2", "3": "HTTP/3"}
# Types that every reader decodes as UTF-8. Some readers decode other text without a charset as Latin-1.
_UTF8_ANYWAY = ("json", "html", "javascript", "ecmascript")


def export(tape: Tape) -> Iterator[bytes]:
    """The text of a tape as a HAR file, an entry at a time."""
    return har(tape.exchanges, tape.header.started, tape.header.note or "")


def har(exchanges: Iterable[Exchange], started: datetime, comment: str) -> Iterator[bytes]:
    """Yield the text of a HAR file, one entry at a time."""
    creator = orjson.dumps({"name": "wiretape", "version": __version__})
    yield b'{"log":{"version":"1.2","creator":%b,"pages":[],"comment":%b,"entries":[' % (creator, orjson.dumps(comment))
    for number, exchange in enumerate(exchanges):
        yield (b",\n" if number else b"\n") + orjson.dumps(entry(exchange, started))
    yield b"\n]}}\n"


def entry(exchange: Exchange, started: datetime) -> JsonObject:
    """Return an exchange as a HAR entry."""
    response = exchange.response
    end = exchange.at if exchange.ended_at is None else exchange.ended_at
    head = min(max(exchange.at, response.headers_at if response else end), max(end, exchange.at))
    made: JsonObject = {
        "startedDateTime": (started + timedelta(milliseconds=exchange.at)).isoformat(timespec="microseconds"),
        "time": max(0, end - exchange.at),
        "request": _request(exchange.request),
        "response": _response(response, exchange) if response else _no_response(exchange),
        "cache": {},
        "timings": {
            "blocked": -1,
            "dns": -1,
            "connect": -1,
            "ssl": -1,
            "send": 0,
            "wait": head - exchange.at,
            "receive": max(0, end - head),
        },
        OURS: _ours(exchange),
    }
    if exchange.ended is not Ended.COMPLETE:
        made["comment"] = f"this exchange did not complete: {exchange.ended or 'it is still open'}"
    if exchange.messages or exchange.close or (response is not None and response.status == 101):
        made["_resourceType"] = "websocket"
        made["_webSocketMessages"] = [_message(message, started) for message in exchange.messages]
    return made


def _ours(exchange: Exchange) -> JsonObject:
    made: JsonObject = {"exchange": exchange.number, "ended": exchange.ended}
    if (url := exchange.request.url) != _shown_url(url):
        made["url"] = url
    response = exchange.response
    if response is None:
        made["response"] = False
    else:
        if isinstance(response.body, StreamBody):
            made["ms"] = " ".join(map(str, response.body.ms))
            if response.body.rewritten:
                made["rewritten"] = list(response.body.rewritten)
        if response.trailers is not None:
            made["trailers"] = _headers(response.trailers)
    if exchange.close is not None:
        close = exchange.close
        made["close"] = {"code": close.code, "reason": close.reason, "from": close.sender}
    return made


def _request(request: Request) -> JsonObject:
    made: JsonObject = {
        "method": request.method,
        "url": _shown_url(request.url),
        "httpVersion": _VERSIONS.get(request.http or "", "unknown"),
        "cookies": [],
        "headers": _headers(request.headers),
        "queryString": _query(request.url),
        "headersSize": -1,
        "bodySize": len(body_bytes(request.body)),
    }
    if request.body is not None:
        kind = request.headers.get("content-type", "")
        made["postData"] = {"mimeType": kind, "params": [], **_text(request.body, kind)}
    return made


def _response(response: Response, exchange: Exchange) -> JsonObject:
    kind = response.headers.get("content-type", "")
    size = len(body_bytes(response.body))
    content: JsonObject = {"size": size, "mimeType": kind or "x-unknown"}
    if response.body is not None:
        content |= _text(response.body, kind)
    return {
        "status": response.status,
        "statusText": _reason(response.status),
        "httpVersion": _VERSIONS.get(exchange.request.http or "", "unknown"),
        "cookies": [],
        "headers": _headers(response.headers),
        "content": content,
        "redirectURL": response.headers.get("location", ""),
        "headersSize": -1,
        "bodySize": size,
        "_transferSize": size,
    }


def _no_response(exchange: Exchange) -> JsonObject:
    return {
        "status": 0,
        "statusText": "",
        "httpVersion": "",
        "cookies": [],
        "headers": [],
        "content": {"size": 0, "mimeType": "x-unknown"},
        "redirectURL": "",
        "headersSize": -1,
        "bodySize": -1,
        "_transferSize": 0,
        "_error": f"{exchange.ended or 'open'}",
    }


def _text(body: Body, kind: str) -> JsonObject:
    """Return a body as text if every reader decodes it to the same bytes, else in base64."""
    raw = body_bytes(body)
    kind = kind.lower()
    plain = raw.isascii() or any(part in kind for part in _UTF8_ANYWAY) or "charset=utf-8" in kind.replace('"', "")
    if plain:
        try:
            return {"text": raw.decode()}
        except UnicodeDecodeError:
            pass
    return {"text": to_base64(raw), "encoding": "base64"}


def _message(message: WsMessage, started: datetime) -> JsonObject:
    raw = body_bytes(message.body)
    when = (started + timedelta(milliseconds=message.at)).timestamp()
    sender = "send" if message.sender == "client" else "receive"
    if isinstance(message.body, BytesBody):
        return {"type": sender, "time": when, "opcode": 2, "data": to_base64(raw)}
    return {"type": sender, "time": when, "opcode": 1, "data": raw.decode()}


def _headers(headers: Headers) -> list[JsonObject]:
    return [{"name": name, "value": value} for name, value in headers.pairs()]


def _shown_url(url: str) -> str:
    """Return a URL for readers that need a host: an unknown one gets a host that never exists (RFC 6761)."""
    return f"https://unknown.invalid/{quote(url.partition(':')[2].lstrip('/'))}" if url.startswith(UNKNOWN_URL) else url


def _query(url: str) -> list[JsonObject]:
    try:
        query = urlsplit(url).query
    except ValueError:
        return []
    return [{"name": name, "value": value} for name, value in parse_qsl(query, keep_blank_values=True)]


def _reason(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
