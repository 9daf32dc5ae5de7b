"""Imports go-vcr's cassettes, of versions 1 to 4: bodies are text, and a status is "200 OK".

`duration` is the time to the response's headers. The start of an exchange is not recorded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from wiretape.adapters.importers.bodies import (
    clean,
    cut_short,
    header_pairs,
    http_version,
    received_body,
    sent_body,
)
from wiretape.adapters.importers.documents import ImportRefused
from wiretape.adapters.importers.source import ImportedExchange, ParsedEntry, RefusedEntry, Source, each
from wiretape.adapters.importers.vcr import entries_of, not_http, stored
from wiretape.model.http import Ended, Exchange, Request, Response
from wiretape.model.jsonvalue import Json

TITLE = "go-vcr"
_UNITS = {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "μs": 1e-3, "ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
_PART = re.compile(r"(?<!\d)(\d+(?:\.\d+)?)(ns|us|µs|μs|ms|s|m|h)")


def claims(document: Json) -> bool:
    """True for entries whose requests have a `url`, and whose responses have a `code`."""
    return any(
        isinstance(entry, dict)
        and isinstance(entry.get("request"), dict)
        and "url" in entry["request"]
        and "uri" not in entry["request"]
        and isinstance(entry.get("response"), dict)
        and not isinstance(entry["response"].get("status"), dict)
        for entry in (entries_of(document) if isinstance(document, dict) else ())
    )


def read(source: Source) -> Iterator[ImportedExchange | RefusedEntry]:
    return each(source, TITLE, entries_of(source.document), _recorded)


def _recorded(entry: Any) -> ParsedEntry:
    if not isinstance(entry, dict) or not ("request" in entry and "response" in entry):
        raise ImportRefused(not_http(entry))
    asked, answered = entry["request"], entry["response"]
    headers = header_pairs(asked.get("headers"))
    http = http_version(answered.get("proto") or asked.get("proto"))
    method = clean(asked.get("method") or "GET").upper()  # an empty method is GET in Go
    sent = sent_body(stored(asked, headers)[0] or b"", headers)
    request = Request(method, clean(asked["url"]), headers, sent, http)
    return ParsedEntry(Exchange(0, 0, request, *_answer(answered)))


def _answer(answered: Any) -> tuple[Response, Ended, int]:
    headers = header_pairs(answered.get("headers"))
    raw = stored(answered, headers)[0] or b""
    trailers = header_pairs(answered.get("trailer"))
    waited = milliseconds(answered.get("duration"))
    code = answered.get("code") or str(answered["status"]).split()[0]
    body = received_body(raw, headers)
    ended = Ended.UPSTREAM_CLOSED if cut_short(raw, headers) else Ended.COMPLETE
    return Response(int(code), headers, waited, body, trailers or None), ended, waited


def milliseconds(duration: Any) -> int:
    """Return Go's `1m2.5s`, or a number of nanoseconds, in milliseconds; 0 if it is missing."""
    if isinstance(duration, int):
        return duration // 1_000_000
    return round(sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(str(duration or ""))))
