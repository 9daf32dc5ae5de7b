"""Imports traces with one `{request, response}` on each line, as many tools write them; also one document, or a list.

Each side is a message (`method`, `url`, `status`, `headers`, `body`, under any of their usual names), or only its body.
A list of events or chunks becomes a stream of server-sent events.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import orjson

from wiretape.adapters.importers.bare_body import EVENTS, LINES, as_events, is_ndjson
from wiretape.adapters.importers.bodies import (
    clean,
    cut_short,
    from_base64,
    header_pairs,
    http_version,
    received_body,
    sent_body,
    text_bytes,
    value_body,
)
from wiretape.adapters.importers.documents import ImportRefused, parse_json
from wiretape.adapters.importers.source import ImportedExchange, ParsedEntry, RefusedEntry, Source, one
from wiretape.adapters.importers.vcr import UNKNOWN_URL
from wiretape.model.http import Body, Ended, Exchange, Headers, Request, Response, TextBody, WsMessage
from wiretape.model.jsonvalue import JsonObject

TITLE = "JSON Lines"
_URL = ("url", "uri", "full_url", "fullUrl")
_BASE = ("base_url", "upstream_base_url", "upstream", "target", "host")
_STATUS = ("status", "status_code", "statusCode", "code")
_BODY = ("body", "parsed_body", "json", "data", "text", "content")
_RAW = ("body_raw", "raw_body", "rawBody", "bodyRaw", "raw")
_BASE64 = ("body_base64", "base64_body", "bodyBase64", "base64")
_EVENTS = ("sse_events", "sseEvents", "events", "chunks", "stream")
_START = ("started_at", "startedDateTime", "started", "start_time", "startTime", "timestamp", "ts", "time", "at")
_END = ("ended_at", "end_time", "endTime", "finished_at", "timestamp", "ts", "time", "at")
_LENGTH = ("duration_ms", "durationMs", "latency_ms", "latencyMs", "elapsed_ms")
_HEADS = frozenset({"method", "headers", *_URL, "path"})


def read(source: Source) -> Iterator[ImportedExchange | RefusedEntry]:
    for number, entry in _entries(source):
        yield one(source, TITLE, number, entry, _recorded)


def _entries(source: Source) -> Iterator[tuple[int, Any]]:
    """Yield (number, document) for each line, or for each entry of a list."""
    if _is_one_document(source):
        found = source.document
        yield from enumerate(found if isinstance(found, list) else [found], 1)
        return
    for number, line in enumerate(source.lines(), 1):
        if line.strip():
            yield number, line


def _is_one_document(source: Source) -> bool:
    """True if the file is one document or a list, instead of one document on each line."""
    lines = (line for line in source.lines() if line.strip())
    first = next(lines, b"").strip()
    if next(lines, None) is None:
        return first[:1] == b"["
    try:
        orjson.loads(first)
    except orjson.JSONDecodeError:
        return first in (b"{", b"[") or not first.endswith(b"}")
    return False


def _recorded(entry: Any) -> ParsedEntry:
    entry = parse_json(entry) if isinstance(entry, bytes) else entry
    if not isinstance(entry, dict) or "request" not in entry:
        raise ImportRefused("has no request")
    asked, answered = entry["request"], entry.get("response")
    if asked is None:
        raise ImportRefused("has no request")
    answered = _unwrapped(answered)
    times = _Times(entry, asked, answered)
    request = _request(entry, asked)
    if isinstance(answered, dict) and isinstance(answered.get("ws_events"), list):
        return ParsedEntry(_websocket(request, answered["ws_events"], times.length), times.start)
    if answered is None:
        return ParsedEntry(Exchange(0, 0, request, None, Ended.RECORDER_STOPPED, times.length), times.start)
    response, ended = _response(answered)
    response = Response(response.status, response.headers, times.length, response.body)
    return ParsedEntry(Exchange(0, 0, request, response, ended, times.length), times.start)


def _unwrapped(value: Any) -> Any:
    """Return a value without the wrappers `{__type__, __data__}` of objects of an SDK (Llama Stack)."""
    if isinstance(value, list):
        return [_unwrapped(one) for one in value]
    if not isinstance(value, dict):
        return value
    if "__data__" in value and value.keys() <= {"__type__", "__data__"}:
        return _unwrapped(value["__data__"])
    return {name: _unwrapped(one) for name, one in value.items()}


def _websocket(request: Request, events: list[Any], length: int) -> Exchange:
    """Make a WebSocket of its first message and the events of the server (claude-tap). Their times are unknown."""
    handshake = Request("GET", request.url, Headers([*request.headers.pairs(), ("upgrade", "websocket")]))
    sent = [request.body] if request.body is not None else []
    received = [TextBody(event) if isinstance(event, str) else value_body(event) for event in events]
    messages = [WsMessage(0, "client", body) for body in sent]
    messages += [WsMessage(length, "server", body) for body in received if body is not None]
    return Exchange(0, 0, handshake, Response(101), Ended.COMPLETE, length, tuple(messages))


# -- request -----------------------------------------------------------------------------------------------------


def _request(entry: JsonObject, asked: Any) -> Request:
    if not (isinstance(asked, dict) and _HEADS & asked.keys()):
        inner = asked["body"] if isinstance(asked, dict) and asked.keys() == {"body"} else asked
        url, method = _first(entry, _URL), entry.get("method")
        headers = header_pairs(entry.get("request_headers"))
        return Request(clean(method or "POST").upper(), clean(url or UNKNOWN_URL), headers, _sent(inner, headers))
    headers = header_pairs(asked.get("headers"))
    raw, body = _stored(asked, headers)
    made = body if raw is None else sent_body(raw, headers)
    method = clean(asked.get("method") or ("POST" if made else "GET")).upper()
    http = http_version(asked.get("http_version") or asked.get("httpVersion") or asked.get("http"))
    return Request(method, _url(entry, asked, headers), headers, made, http)


def _sent(value: Any, headers: Headers) -> Body | None:
    return sent_body(text_bytes(value, headers), headers) if isinstance(value, str) else value_body(value)


def _url(entry: JsonObject, asked: JsonObject, headers: Headers) -> str:
    if url := _first(asked, _URL) or _first(entry, _URL):
        return clean(url)
    path = clean(asked["path"]) if "path" in asked else ""
    base = _first(asked, _BASE) or _first(entry, _BASE) or headers.get("host")
    if not base or "://" in path:
        return path if "://" in path else UNKNOWN_URL + path
    base = clean(base)
    return (base if "://" in base else f"https://{base}").rstrip("/") + path


# -- response ----------------------------------------------------------------------------------------------------


def _response(answered: Any) -> tuple[Response, Ended]:
    status = _first(answered, _STATUS) if isinstance(answered, dict) else None
    shaped = isinstance(answered, dict) and (
        isinstance(status, int | dict) or "headers" in answered or bool(answered.keys() & {*_RAW, *_BASE64, "body"})
    )
    if not shaped:
        return Response(200, *_bare(answered)), Ended.COMPLETE
    headers = header_pairs(answered.get("headers"))
    raw, body = _stored(answered, headers)
    if raw is not None:
        body = received_body(raw, headers)
    ended = Ended.UPSTREAM_CLOSED if raw is not None and cut_short(raw, headers) else Ended.COMPLETE
    code = status["code"] if isinstance(status, dict) else status
    return Response(int(code or 200), headers, 0, body), ended


def _bare(value: Any) -> tuple[Headers, int, Body | None]:
    """Return a response that has only a body."""
    if isinstance(value, list):
        headers = Headers([("content-type", LINES if value and is_ndjson(value[0]) else EVENTS)])
        return headers, 0, received_body(_streamed(value, headers), headers)
    if isinstance(value, str):
        return Headers(), 0, received_body(text_bytes(value, Headers()), Headers())
    return Headers([("content-type", "application/json")]), 0, value_body(value)


def _stored(message: JsonObject, headers: Headers) -> tuple[bytes | None, Body | None]:
    """Return the bytes of a message's body, or the body itself if only its value was recorded."""
    if coded := _first(message, _BASE64):
        return from_base64(coded), None
    for names in (_RAW, _EVENTS):
        found = _first(message, names)
        if isinstance(found, str) and names is _RAW:
            return text_bytes(found, headers), None
        if isinstance(found, list) and names is _EVENTS:
            return _streamed(found, headers), None
    value = _first(message, _BODY)
    if value is None:
        return b"", None
    if isinstance(value, str):
        return text_bytes(value, headers), None
    if isinstance(value, list) and "json" not in headers.get("content-type", "json"):
        return _streamed(value, headers), None
    return None, value_body(value)


def _streamed(events: list[Any], headers: Headers) -> bytes:
    """Return the stream of these events."""
    if headers.get("content-type", "").startswith(LINES):
        return b"".join(orjson.dumps(event) + b"\n" for event in events)
    if all(isinstance(event, str) for event in events):
        joined = "".join(events)
        return joined.encode() if "data:" in joined else as_events([event.encode() for event in events])
    return b"".join(map(_event, events))


def _event(event: Any) -> bytes:
    """Return one event, from (event, data) or from the JSON of its data."""
    name, data = None, event
    if isinstance(event, dict) and "data" in event and event.keys() <= {"event", "data", "id", "time", "timestamp"}:
        name, data = event.get("event"), event["data"]
    text = data.encode() if isinstance(data, str) else orjson.dumps(data)
    lines = b"".join(b"data: %b\n" % line for line in text.split(b"\n"))
    return (b"event: %b\n" % str(name).encode() if name else b"") + lines + b"\n"


# -- times -------------------------------------------------------------------------------------------------------


class _Times:
    """The start (seconds since 1970) and the duration in milliseconds, if the trace has them."""

    def __init__(self, entry: JsonObject, asked: Any, answered: Any) -> None:
        self.start = _time(asked, _START) or _time(entry, _START)
        end = _time(answered, _END)
        length = _first(entry, _LENGTH) or (_first(answered, _LENGTH) if isinstance(answered, dict) else None)
        self.length = 0
        if isinstance(length, int | float):
            self.length = max(0, round(length))
        elif self.start is not None and end is not None:
            self.length = max(0, round((end - self.start) * 1000))


def _time(message: Any, names: tuple[str, ...]) -> float | None:
    value = _first(message, names) if isinstance(message, dict) and not _is_body(message) else None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value / 1000 if value > 1e11 else float(value)  # milliseconds since 1970 have 13 digits
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return None if found is None else (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _is_body(message: JsonObject) -> bool:
    """True for a bare body: its own members are not times of the trace."""
    return "model" in message and "headers" not in message


def _first(message: Any, names: tuple[str, ...]) -> Any:
    if not isinstance(message, dict):
        return None
    return next((message[name] for name in names if message.get(name) is not None), None)
