"""Imports response bodies without requests: JSON, server-sent events, NDJSON, or the JSON of one event on each line.

The request becomes a POST to `unknown:FILE`. The status is 200, unless the body is an error that states another one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import orjson

from wiretape.adapters.importers.bodies import received_body
from wiretape.adapters.importers.documents import ImportRefused, parse_json
from wiretape.adapters.importers.source import ImportedExchange, ParsedEntry, RefusedEntry, Source, one
from wiretape.adapters.importers.vcr import UNKNOWN_URL
from wiretape.model.http import Ended, Exchange, Headers, Request, Response

TITLE = "response body"
EVENTS, LINES, JSON = "text/event-stream", "application/x-ndjson", "application/json"
_STREAM_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:data|event|id|retry)?:")


def read(source: Source) -> Iterator[ImportedExchange | RefusedEntry]:
    yield one(source, TITLE, 1, source, _recorded)


def _recorded(source: Source) -> ParsedEntry:
    raw, kind, status = _body(source)
    headers = Headers([("content-type", kind)])
    response = Response(status, headers, 0, received_body(raw, headers))
    request = Request("POST", UNKNOWN_URL + source.name.rpartition("/")[2])
    return ParsedEntry(Exchange(0, 0, request, response, Ended.COMPLETE, 0))


def _body(source: Source) -> tuple[bytes, str, int]:
    """Return the body, its content type, and the status."""
    data = source.data
    if _STREAM_START.match(data):
        return data, EVENTS, 200
    try:
        return data, JSON, _status(parse_json(data))
    except ImportRefused:
        lines = [line for line in data.splitlines() if line.strip()]
        known = [line for line in lines if _is_json(line)]  # a damaged line is skipped
        if not known:
            raise ImportRefused("is neither JSON nor a stream") from None
    if is_ndjson(parse_json(known[0])):
        return data, LINES, 200
    return as_events(lines), EVENTS, 200


def as_events(lines: list[bytes]) -> bytes:
    """Return a stream with each line as the data of an event."""
    return b"".join(b"data: %b\n\n" % line for line in lines)


def is_ndjson(first: Any) -> bool:
    """True if the lines are an NDJSON stream (Ollama), false if they are the data of events."""
    return isinstance(first, dict) and isinstance(first.get("done"), bool) and "model" in first


def _is_json(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True


def _status(body: Any) -> int:
    error = body.get("error") if isinstance(body, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and 400 <= code < 600 else 200
