"""Imports WireMock's stub mappings: one mapping, or `{mappings: […]}`, in JSON or YAML.

A mapping has a pattern of the request. It is imported if the pattern says the URL, and a body if it equals a value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wiretape.adapters.importers.bodies import (
    clean,
    from_base64,
    header_pairs,
    received_body,
    sent_body,
    text_bytes,
    value_body,
)
from wiretape.adapters.importers.documents import ImportRefused
from wiretape.adapters.importers.source import ImportedExchange, ParsedEntry, RefusedEntry, Source, each
from wiretape.adapters.importers.vcr import UNKNOWN_URL
from wiretape.model.http import Body, Ended, Exchange, Headers, Request, Response
from wiretape.model.jsonvalue import Json

TITLE = "WireMock"
_ASKED = frozenset({"bodyPatterns", "urlPath", "urlPattern", "urlPathPattern", "urlPathTemplate"})
_ANSWERED = frozenset({"jsonBody", "base64Body", "bodyFileName", "fixedDelayMilliseconds", "transformers"})


def claims(document: Json) -> bool:
    return any(map(_is_mapping, _mappings(document)[:1]))


def _mappings(document: Json) -> list[Any]:
    listed = document.get("mappings") if isinstance(document, dict) else document
    return listed if isinstance(listed, list) else [document]


def _is_mapping(entry: Json) -> bool:
    if not isinstance(entry, dict):
        return False
    request, response = entry.get("request"), entry.get("response")
    if not isinstance(request, dict) or not isinstance(response, dict):
        return False
    return bool(_ASKED & request.keys() or _ANSWERED & response.keys())


def read(source: Source) -> Iterator[ImportedExchange | RefusedEntry]:
    return each(source, TITLE, _mappings(source.document), _recorded)


def _recorded(entry: Any) -> ParsedEntry:
    asked, answered = entry["request"], entry["response"]
    url = asked.get("url") or asked.get("urlPath")
    if not isinstance(url, str):
        raise ImportRefused("has no URL but a pattern of one")
    request = Request(
        clean(asked.get("method") or "POST").upper(),
        clean(url) if "://" in url else UNKNOWN_URL + clean(url),
        header_pairs({name: _equal(value) for name, value in (asked.get("headers") or {}).items()}),
        _sent(asked.get("bodyPatterns")),
    )
    headers = header_pairs(answered.get("headers"))
    response = Response(int(answered.get("status", 200)), headers, 0, _received(answered, headers))
    return ParsedEntry(Exchange(0, 0, request, response, Ended.COMPLETE, 0))


def _equal(pattern: Any) -> Any:
    """Return the value that a pattern demands, or None."""
    return pattern.get("equalTo") if isinstance(pattern, dict) else None


def _sent(patterns: Any) -> Body | None:
    for pattern in patterns if isinstance(patterns, list) else ():
        value = pattern.get("equalToJson", pattern.get("equalTo")) if isinstance(pattern, dict) else None
        if value is not None:
            return sent_body(text_bytes(value, Headers()), Headers()) if isinstance(value, str) else value_body(value)
    return None


def _received(answered: Any, headers: Headers) -> Body | None:
    if "bodyFileName" in answered:
        raise ImportRefused(f"has its body in another file, {clean(answered['bodyFileName'])}")
    if "jsonBody" in answered:
        return value_body(answered["jsonBody"])
    if "base64Body" in answered:
        return received_body(from_base64(answered["base64Body"]), headers)
    return received_body(text_bytes(answered.get("body") or "", headers), headers)
