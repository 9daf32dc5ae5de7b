"""Imports cassettes of Ruby's VCR: YAML and JSON, bodies as encoded text or base64.

`recorded_at` is the end of a response, in whole seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from wiretape.adapters.importers.bodies import clean, header_pairs, http_version, sent_body
from wiretape.adapters.importers.documents import ImportRefused
from wiretape.adapters.importers.source import ImportedExchange, ParsedEntry, RefusedEntry, Source, each
from wiretape.adapters.importers.vcr import answer, not_http, stored
from wiretape.model.http import Exchange, Request
from wiretape.model.jsonvalue import Json

TITLE = "Ruby VCR"
_SAME_AS_UTF8 = ("", "utf-8", "us-ascii", "ascii-8bit", "binary")


def claims(document: Json) -> bool:
    return isinstance(document, dict) and "http_interactions" in document


def read(source: Source) -> Iterator[ImportedExchange | RefusedEntry]:
    return each(source, TITLE, source.document["http_interactions"] or (), _recorded)


def _recorded(entry: Any) -> ParsedEntry:
    if not isinstance(entry, dict) or not ("request" in entry and "response" in entry):
        raise ImportRefused(not_http(entry))
    asked, answered = _encoded(entry["request"]), _encoded(entry["response"])
    headers = header_pairs(asked.get("headers"))
    method = clean(asked["method"]).removeprefix(":").upper()
    sent = sent_body(stored(asked, headers)[0] or b"", headers)
    request = Request(method, clean(asked["uri"]), headers, sent, http_version(answered.get("http_version")))
    return ParsedEntry(Exchange(0, 0, request, *answer(answered)), _time(entry.get("recorded_at")))


def _encoded(message: Any) -> Any:
    """The message with its body in the encoding that it says it had."""
    body = message.get("body")
    if not isinstance(body, dict) or not isinstance(body.get("string"), str):
        return message
    encoding = str(body.get("encoding") or "")
    if encoding.lower() in _SAME_AS_UTF8:
        return message
    try:
        return {**message, "body": {"string": body["string"].encode(encoding)}}
    except (LookupError, UnicodeEncodeError):
        return message


def _time(text: Any) -> float | None:
    """Seconds since 1970 of `Tue, 01 Nov 2011 04:58:44 GMT` or an ISO date."""
    for parse in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            return parse(str(text)).timestamp()
        except (ValueError, TypeError):
            continue
    return None
