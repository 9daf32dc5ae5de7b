"""Imports the recordings of nock: a JSON list of `{scope, method, path, body, status, response}`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wiretape.adapters.importers.bodies import clean, cut_short, header_pairs, received_body, sent_body, value_body
from wiretape.adapters.importers.documents import ImportRefused
from wiretape.adapters.importers.source import ImportedExchange, ParsedEntry, RefusedEntry, Source, each
from wiretape.model.http import Body, Ended, Exchange, Headers, Request, Response
from wiretape.model.jsonvalue import Json

TITLE = "nock"
_NEEDED = frozenset({"scope", "method", "path"})


def claims(document: Json) -> bool:
    entries = document if isinstance(document, list) else [document]
    return bool(entries) and all(isinstance(entry, dict) and entry.keys() >= _NEEDED for entry in entries)


def read(source: Source) -> Iterator[ImportedExchange | RefusedEntry]:
    document = source.document
    return each(source, TITLE, document if isinstance(document, list) else [document], _recorded)


def _recorded(entry: Any) -> ParsedEntry:
    sent = header_pairs(entry.get("reqheaders"))
    body = entry.get("body")
    asked = sent_body(body.encode(), sent) if isinstance(body, str) else value_body(body) if body is not None else None
    request = Request(clean(entry["method"]).upper(), _url(entry), sent, asked)
    raw_headers = entry.get("rawHeaders") or entry.get("headers")
    headers = _flat(raw_headers) if isinstance(raw_headers, list) else header_pairs(raw_headers)
    raw, value = _answer(entry.get("response"))
    ended = Ended.UPSTREAM_CLOSED if raw is not None and cut_short(raw, headers) else Ended.COMPLETE
    received = value if raw is None else received_body(raw, headers)
    return ParsedEntry(Exchange(0, 0, request, Response(int(entry.get("status", 200)), headers, 0, received), ended, 0))


def _url(entry: Any) -> str:
    scope = clean(entry["scope"])
    for scheme, port in (("https://", ":443"), ("http://", ":80")):
        if scope.startswith(scheme):
            scope = scope.removesuffix(port)
    return scope + clean(entry["path"])


def _flat(headers: list[Any]) -> Headers:
    """Return the headers of a list of names and values in turn."""
    if headers and not isinstance(headers[0], str):
        return header_pairs(headers)
    return header_pairs(list(zip(headers[::2], headers[1::2], strict=False)))


def _answer(response: Any) -> tuple[bytes | None, Body | None]:
    """Return the bytes of a body, or a body of which only the value was recorded. Binary data is hexadecimal."""
    if isinstance(response, list) and response and all(isinstance(piece, str) for piece in response):
        response = "".join(response)
        try:
            return bytes.fromhex(response), None
        except ValueError:
            raise ImportRefused("its body is not hexadecimal") from None
    if isinstance(response, str):
        return response.encode("utf-8", "surrogatepass"), None
    return (b"", None) if response is None else (None, value_body(response))
