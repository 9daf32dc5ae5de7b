"""Imports HAR 1.2 of browsers (with Chrome's `_webSocketMessages`), of mitmproxy, of Polly.js, and of wiretape.

Times come from `startedDateTime` and `timings`. Only wiretape's own files have the time of each part of a body.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

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
from wiretape.adapters.importers.documents import ImportRefused
from wiretape.adapters.importers.source import ImportedExchange, ParsedEntry, RefusedEntry, Source, each
from wiretape.model.http import (
    Body,
    BytesBody,
    Close,
    Ended,
    Exchange,
    Headers,
    Request,
    Response,
    StreamBody,
    TextBody,
    WsMessage,
)
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.tape.format.bodies import plain_body

TITLE = "HAR"
OURS = "_wiretape"  # wiretape's own member, for values that HAR has no member for
_TO_HEADERS = ("blocked", "dns", "connect", "send", "wait")  # `ssl` is part of `connect`
_MITMPROXYS = ("send", "wait")  # its `connect` may be the time of an earlier connection
_PROTOCOLS = ("http:", "https:", "ws:", "wss:", "unknown:")
_ABORTED = ("abort", "cancel")


def claims(document: Json) -> bool:
    return bool(_logs(document))


def _logs(document: Json) -> list[JsonObject]:
    """Return the log of a HAR, or the logs in a dump of Polly's browser storage, by recording names."""
    if not isinstance(document, dict):
        return []
    wrapped = [document] if "log" in document else list(document.values())
    logs = [one["log"] for one in wrapped if isinstance(one, dict) and isinstance(one.get("log"), dict)]
    whole = len(logs) == len(wrapped) and all(isinstance(log.get("entries"), list) for log in logs)
    return logs if whole else []


def read(source: Source) -> Iterator[ImportedExchange | RefusedEntry]:
    logs = _logs(source.document)
    if not logs:
        raise ImportRefused("is not a HAR: it has no log with entries")
    entries = [(entry, _creator(log) == "mitmproxy") for log in logs for entry in log["entries"]]
    return each(source, TITLE, entries, lambda pair: _recorded(*pair))


def _creator(log: JsonObject) -> Json:
    creator = log.get("creator")
    return creator.get("name") if isinstance(creator, dict) else None


def _recorded(entry: JsonObject, mitmproxys: bool) -> ParsedEntry:
    ours = entry.get(OURS) or {}
    request = _request(entry["request"], ours)
    head, end = _times(entry, _MITMPROXYS if mitmproxys else _TO_HEADERS)
    started = _epoch(entry.get("startedDateTime"))
    answered = entry["response"]
    if not answered.get("status") or ours.get("response") is False:
        return ParsedEntry(Exchange(0, 0, request, None, _failed(entry, answered), end), started, entry.get("_order"))
    response, cut = _response(_with_events(answered, entry), head, mitmproxys)
    response = _timed(response, ours)
    messages, close = _messages(entry, started), _close(ours)
    if messages:
        end = max(end, messages[-1].at)
    ended = Ended(ours.get("ended") or (Ended.UPSTREAM_CLOSED if cut else Ended.COMPLETE))
    exchange = Exchange(0, 0, request, response, ended, end, messages, close)
    return ParsedEntry(exchange, started, entry.get("_order"))


def _request(asked: JsonObject, ours: JsonObject) -> Request:
    url = clean(ours.get("url") or asked["url"])
    if not url.lower().startswith(_PROTOCOLS):
        raise ImportRefused(f"is not an HTTP exchange ({url.partition(':')[0][:20]}:)")
    headers = header_pairs(asked.get("headers"))
    version = http_version(asked.get("httpVersion"))
    return Request(clean(asked["method"]).upper(), url, headers, _sent(asked.get("postData") or {}, headers), version)


def _sent(posted: JsonObject, headers: Headers) -> Body | None:
    text = posted.get("text")
    if text is not None:
        raw = from_base64(text) if posted.get("encoding") == "base64" else text_bytes(text, headers)
        return sent_body(raw, headers)
    if "textJSON" in posted:  # Polly, in its YAML form
        return value_body(posted["textJSON"])
    return sent_body(_form(posted["params"]), headers) if posted.get("params") else None


def _form(params: list[JsonObject]) -> bytes:
    from urllib.parse import urlencode

    return urlencode([(param["name"], param.get("value") or "") for param in params]).encode()


def _response(answered: JsonObject, head: int, mitmproxys: bool) -> tuple[Response, bool]:
    headers = header_pairs(answered.get("headers"))
    raw = _content(answered.get("content") or {}, headers, mitmproxys)
    body = received_body(raw, headers)
    return Response(int(answered["status"]), headers, head, body), cut_short(raw, headers)


def _content(content: JsonObject, headers: Headers, mitmproxys: bool) -> bytes:
    """Return the bytes of a response's body. Raises ImportRefused if the file has only its size."""
    text, encoding = content.get("text"), content.get("encoding")
    if not text:
        size = content.get("size")
        if isinstance(size, int | float) and size > 0:
            raise ImportRefused(f"its response had {round(size)} bytes, which the file does not contain")
        return b""
    if encoding == "base64" or encoding == "hex" or content.get("_isBinary"):
        return _coded(text, encoding or "hex")
    if mitmproxys and not text.isascii():
        return _mitmproxys(text, headers)
    return text_bytes(text, headers)


def _with_events(answered: JsonObject, entry: JsonObject) -> JsonObject:
    """Add the body of an EventSource: Chrome stores its events in another member, and omits the body."""
    events, content = entry.get("_eventSourceMessages"), answered.get("content") or {}
    if not events or content.get("text"):
        return answered
    return {**answered, "content": {**content, "text": "".join(map(_event, events))}}


def _event(event: JsonObject) -> str:
    name, known = event.get("eventName"), event.get("eventId")
    lines = [f"event: {name}"] if name and name != "message" else []
    lines += [f"id: {known}"] if known else []
    return "\n".join([*lines, *(f"data: {line}" for line in event["data"].split("\n")), "", ""])


def _coded(text: str, encoding: str) -> bytes:
    """Decode base64 or hex. Polly writes a JSON list with one text for each chunk."""
    chunks = json.loads(text) if text.startswith("[") else [text]
    return b"".join(bytes.fromhex(chunk) if encoding == "hex" else from_base64(chunk) for chunk in chunks)


def _mitmproxys(text: str, headers: Headers) -> bytes:
    """Undo mitmproxy's decoding as Latin-1, which it uses for text without a charset."""
    try:
        raw = text.encode("latin-1")
        raw.decode()
    except UnicodeError:
        return text_bytes(text, headers)
    return raw


# -- WebSockets --------------------------------------------------------------------------------------------------


def _messages(entry: JsonObject, started: float | None) -> tuple[WsMessage, ...]:
    made: list[WsMessage] = []
    for message in entry.get("_webSocketMessages") or ():
        when = message.get("time")
        known = started is not None and isinstance(when, int | float)
        at = max(0, round((when - started) * 1000)) if known else made[-1].at if made else 0
        sender = "client" if message["type"] == "send" else "server"
        made.append(WsMessage(at, sender, _message(message)))  # type: ignore[arg-type]
    return tuple(made)


def _message(message: JsonObject) -> Body:
    if message.get("opcode") == 2:
        return BytesBody(from_base64(message["data"]))
    return plain_body(message["data"].encode("utf-8", "surrogatepass")) or TextBody("")


def _close(ours: JsonObject) -> Close | None:
    close = ours.get("close")
    return Close(close["code"], close["reason"], close.get("from")) if close else None


# -- times and ends ----------------------------------------------------------------------------------------------


def _times(entry: JsonObject, to_headers: tuple[str, ...]) -> tuple[int, int]:
    """Return milliseconds to the response's headers, and to its end. In a HAR, -1 means: does not apply."""
    timings = entry.get("timings") or {}
    head = sum(max(0.0, timings.get(name) or 0) for name in to_headers)
    receive = max(0.0, timings.get("receive") or 0)
    if not timings:
        receive = max(0.0, entry.get("time") or 0)
    return round(head), round(head + receive)


def _epoch(text: Any) -> float | None:
    try:
        found = datetime.fromisoformat(text)
    except (ValueError, TypeError):
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _timed(response: Response, ours: JsonObject) -> Response:
    """Add what only wiretape's own HARs have: the time of each frame, and the trailers."""
    from dataclasses import replace

    body = response.body
    if isinstance(body, StreamBody) and (marks := ours.get("ms")) is not None:
        ms = [int(mark) for mark in marks.split()]
        if len(ms) == len(body.frames):
            body = replace(body, ms=tuple(ms), rewritten=tuple(ours.get("rewritten") or ()))
    trailers = header_pairs(ours["trailers"]) if "trailers" in ours else None
    return replace(response, body=body, trailers=trailers)


def _failed(entry: JsonObject, answered: JsonObject) -> Ended:
    """Return how an exchange without a response ended."""
    if ended := (entry.get(OURS) or {}).get("ended"):
        return Ended(ended)
    reason = str(answered.get("_error") or entry.get("_error") or "").lower()
    return Ended.CLIENT_CLOSED if any(word in reason for word in _ABORTED) else Ended.UPSTREAM_UNREACHABLE
