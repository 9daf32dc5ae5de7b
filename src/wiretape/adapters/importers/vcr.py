"""Imports vcrpy's cassettes: YAML and JSON, with bodies as text, binary or values, and messages of WebSockets.

vcrpy records no times. Of a WebSocket it records the messages and sometimes the close, but no URL.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from wiretape.adapters.importers.bodies import (
    clean,
    cut_short,
    from_base64,
    header_pairs,
    received_body,
    sent_body,
    text_bytes,
    value_body,
)
from wiretape.adapters.importers.documents import ImportRefused
from wiretape.adapters.importers.source import ImportedExchange, ParsedEntry, RefusedEntry, Source, one
from wiretape.model.http import (
    Body,
    BytesBody,
    Close,
    Ended,
    Exchange,
    Headers,
    Request,
    Response,
    TextBody,
    WsMessage,
)
from wiretape.model.jsonvalue import Json

TITLE = "vcrpy"
UNKNOWN_URL = "unknown:"


def claims(document: Json) -> bool:
    """True for a cassette of vcrpy. go-vcr's look similar and are checked first."""
    return bool(entries_of(document)) or (isinstance(document, dict) and "interactions" in document)


def entries_of(document: Json) -> list[Any]:
    found = document.get("interactions") if isinstance(document, dict) else document
    if found is None and isinstance(document, dict):  # requests and responses apart
        sides = [document.get(name) for name in ("requests", "responses")]
        if all(isinstance(side, list) for side in sides):
            pairs = zip_longest(*sides)  # type: ignore[arg-type]
            return [{"request": request, "response": response} for request, response in pairs]
    return found if isinstance(found, list) else []


def read(source: Source) -> Iterator[ImportedExchange | RefusedEntry]:
    """Yield every exchange, in the order of the entries."""
    for number, group in enumerate(_grouped(entries_of(source.document)), 1):
        yield one(source, TITLE, number, group, lambda group: _recorded(group, source.name))


def _grouped(entries: list[Any]) -> Iterator[Any]:
    """Yield entries one by one, but the messages of a WebSocket together, because they are one exchange."""
    messages: list[Any] = []
    for entry in entries:
        if not (isinstance(entry, dict) and "kind" in entry):
            if messages:
                yield messages
                messages = []
            yield entry
            continue
        messages.append(entry)
        if entry["kind"] == "close":
            yield messages
            messages = []
    if messages:
        yield messages


def _recorded(entry: Any, name: str) -> ParsedEntry:
    if isinstance(entry, list):
        return ParsedEntry(_websocket(entry, name))
    if not isinstance(entry, dict) or entry.get("request") is None or entry.get("response") is None:
        raise ImportRefused(not_http(entry))
    headers = header_pairs(entry["request"].get("headers"))
    request = Request(
        clean(entry["request"]["method"]).upper(), _url(entry["request"]), headers, _sent(entry["request"], headers)
    )
    return ParsedEntry(Exchange(0, 0, request, *answer(entry["response"])))


def not_http(entry: Any) -> str:
    """Return the reason to refuse an entry that is not an HTTP exchange."""
    shown = ", ".join(map(str, entry)) if isinstance(entry, dict) else type(entry).__name__
    return f"is not an HTTP exchange (it holds {shown})"


def _url(request: Any) -> str:
    if uri := request.get("uri") or request.get("url"):
        return clean(uri)
    # vcrpy before 1.0
    port = request["port"]
    shown = "" if port in (None, 80, 443) else f":{port}"
    return f"{request['protocol']}://{request['host']}{shown}{request['path']}"


def answer(response: Any) -> tuple[Response, Ended, int]:
    """Return a response, how it ended, and its end in milliseconds."""
    headers = header_pairs(response.get("headers"))
    raw, body = stored(response, headers)
    status = response["status"] if "status" in response else response["status_code"]  # of httpx, in older versions
    code = status["code"] if isinstance(status, dict) else status
    if raw is not None:
        body = received_body(raw, headers)
    ended = Ended.UPSTREAM_CLOSED if raw is not None and cut_short(raw, headers) else Ended.COMPLETE
    return Response(int(code), headers, 0, body), ended, 0


def _sent(request: Any, headers: Headers) -> Body | None:
    raw, body = stored(request, headers)
    return body if raw is None else sent_body(raw, headers)


def stored(message: Any, headers: Headers) -> tuple[bytes | None, Body | None]:
    """Return the bytes of a message's body, or the body itself if only its value was recorded."""
    if "parsed_body" in message:
        return None, value_body(message["parsed_body"])
    value = message.get("body") if "body" in message else message.get("content")
    if isinstance(value, dict):
        if not value.keys() & {"string", "base64_string", "state"}:
            return (None, value_body(value)) if value else (b"", None)
        value = _wrapped(value)
    if isinstance(value, list):
        return None, value_body(value)
    if isinstance(value, str):
        return text_bytes(value, headers), None
    return (value if isinstance(value, bytes) else b""), None


def _wrapped(body: Any) -> Any:
    """Return the body in a mapping: text, binary, base64, or the state of a file object that a client sent."""
    if body.get("base64_string") is not None:
        coded = body["base64_string"]
        return coded if isinstance(coded, bytes) else from_base64(coded)
    value = body.get("string")
    if value is None and isinstance(body.get("state"), list):
        value = body["state"][0]
    return value


def _websocket(entries: list[Any], name: str) -> Exchange:
    """Make one WebSocket. URL and times are unknown: its messages are a millisecond apart."""
    messages = [
        WsMessage(at, "client" if entry["direction"] == "sent" else "server", _message(entry["data"]))
        for at, entry in enumerate((entry for entry in entries if entry["kind"] != "close"), 1)
    ]
    request = Request("GET", UNKNOWN_URL + name.rpartition("/")[2], Headers([("upgrade", "websocket")]))
    end = len(messages) + 1
    last = entries[-1]
    if last["kind"] != "close":
        return Exchange(0, 0, request, Response(101), Ended.RECORDER_STOPPED, end, tuple(messages))
    close = Close(int(last["code"]), clean(last.get("reason") or ""), None)
    return Exchange(0, 0, request, Response(101), Ended.COMPLETE, end, tuple(messages), close)


def _message(data: Any) -> Body:
    if isinstance(data, bytes):
        return BytesBody(data)
    if isinstance(data, str):
        return TextBody(data)
    return value_body(data) or TextBody("")
