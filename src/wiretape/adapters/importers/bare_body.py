"""Reads bodies of responses that somebody kept without their requests: JSON, server-sent events, NDJSON, or a file of
one event's JSON a line.

The request is not known: a POST to `unknown:FILE`. The status is 200, unless the body is an error that states another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import orjson

from wiretape.adapters.importers.import_bodies import received_body
from wiretape.adapters.importers.import_source import CannotTake, Recorded, Refused, Source, Taken, one, parse_json
from wiretape.adapters.importers.vcr import UNKNOWN_URL
from wiretape.model.http import Ended, Exchange, Headers, Request, Response

NAME = "body"
TITLE = "response body"
EVENTS, LINES, JSON = "text/event-stream", "application/x-ndjson", "application/json"
_STREAM_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:data|event|id|retry)?:")


def read(source: Source) -> Iterator[Taken | Refused]:
    yield one(source, TITLE, 1, source, _recorded)


def _recorded(source: Source) -> Recorded:
    raw, kind, status = _body(source)
    headers = Headers([("content-type", kind)])
    response = Response(status, headers, 0, received_body(raw, headers))
    request = Request("POST", UNKNOWN_URL + source.name.rpartition("/")[2])
    return Recorded(Exchange(0, 0, request, response, Ended.COMPLETE, 0))


def _body(source: Source) -> tuple[bytes, str, int]:
    """The body, its content type, and the status."""
    data = source.data
    if _STREAM_START.match(data):
        return data, EVENTS, 200
    try:
        return data, JSON, _status(parse_json(data))
    except CannotTake:
        lines = [line for line in data.splitlines() if line.strip()]
        known = [line for line in lines if _is_json(line)]  # one that is torn costs only itself
        if not known:
            raise CannotTake("is neither JSON nor a stream") from None
    if is_ndjson(parse_json(known[0])):
        return data, LINES, 200
    return as_events(lines), EVENTS, 200


def as_events(lines: list[bytes]) -> bytes:
    """Each line as the data of an event."""
    return b"".join(b"data: %b\n\n" % line for line in lines)


def is_ndjson(first: Any) -> bool:
    """Whether these lines are themselves the stream (Ollama), and not what stood in its events."""
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
