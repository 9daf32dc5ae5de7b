"""Parses AWS event streams: binary messages with headers, lengths and checksums.

This module knows no event names. Data that is not a valid message (truncated or altered) is kept with the reason.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from struct import Struct
from typing import NamedTuple
from zlib import crc32

from wiretape.model.call import Message, Unknown
from wiretape.model.framing import AwsFramer
from wiretape.model.http import Response, StreamBody
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.lenient import NotJson, as_text, load, obj, raw_bytes, string
from wiretape.wire.payload import frames_of

CONTENT_TYPE = "application/vnd.amazon.eventstream"
_PRELUDE = 12  # total length, length of the headers, CRC-32 of both
_HEAD = Struct(">III")
_FAST_PATH_LIMIT = 1024 * 1024  # bytes; longer chunks may not be messages
_CLOSE = 4  # CRC-32 of all bytes before it
_TRUE, _FALSE, _BYTES, _STRING = 0, 1, 6, 7
_WIDTHS = {_TRUE: 0, _FALSE: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}  # value types of fixed width
_NUMBERS = frozenset({2, 3, 4, 5, 8})
# The HTTP status of an error before the stream.
_STATUS = {
    "throttlingException": 429,
    "internalServerException": 500,
    "serviceUnavailableException": 503,
    "modelTimeoutException": 408,
    "modelStreamErrorException": 424,
    "validationException": 400,
}


class AwsMessage(NamedTuple):
    headers: Mapping[str, Json]
    payload: bytes


class Corrupt(NamedTuple):
    """Bytes that are not a valid message, and the reason."""

    problem: str
    data: bytes


class AwsEvent(NamedTuple):
    """One message. `kind`: `event`, `exception` or `error`. `ms` counts from the response's headers."""

    kind: str
    name: str
    value: Json
    ms: int | None = None


@dataclass(frozen=True, slots=True)
class AwsEvents:
    events: tuple[AwsEvent, ...]
    corrupt: tuple[Corrupt, ...] = ()

    def corrupt_messages(self) -> tuple[Message, ...]:
        """Return the invalid data as a message of role `system`, because the model did not write it."""
        blocks = tuple(
            Unknown("corrupt_event_stream", {"problem": bad.problem, "base64": base64.b64encode(bad.data).decode()})
            for bad in self.corrupt
        )
        return (Message("system", blocks, ("",) * len(blocks)),) if blocks else ()


def parse_message(frame: bytes) -> AwsMessage | Corrupt:
    """Parse one message and verify both checksums."""
    if len(frame) < _PRELUDE:
        return Corrupt("the stream ends inside the head of a message", frame)
    total, head, check = _HEAD.unpack_from(frame)
    if crc32(frame[:8]) != check:
        return Corrupt("the checksum of a message's head is wrong: these are not the bytes that were sent", frame)
    if len(frame) < total:
        return Corrupt(f"the stream ends inside a message: {len(frame)} of {total} bytes", frame)
    end = len(frame) - _CLOSE
    if crc32(frame[:end]) != int.from_bytes(frame[end:], "big"):
        return Corrupt("the checksum of a message is wrong: these are not the bytes that were sent", frame)
    headers = _headers(frame[_PRELUDE : _PRELUDE + head]) if _PRELUDE + head <= end else None
    if headers is None:
        return Corrupt("the headers of a message cannot be read", frame)
    return AwsMessage(headers, frame[_PRELUDE + head : end])


@lru_cache(256)
def _headers(data: bytes) -> Mapping[str, Json] | None:
    """Parse headers. The result is cached, because most messages repeat their headers: never modify it."""
    found: dict[str, Json] = {}
    at = 0
    while at < len(data):
        name_end = at + 1 + data[at]
        if name_end >= len(data):
            return None
        name, kind = as_text(data[at + 1 : name_end]), data[name_end]
        at = name_end + 1
        if kind in (_BYTES, _STRING):
            size, at = int.from_bytes(data[at : at + 2], "big"), at + 2
        elif kind in _WIDTHS:
            size = _WIDTHS[kind]
        else:
            return None
        if at + size > len(data):
            return None
        found[name] = _value(kind, data[at : at + size])
        at += size
    return found


def _value(kind: int, data: bytes) -> Json:
    if kind in (_TRUE, _FALSE):
        return kind == _TRUE
    if kind in _NUMBERS:
        return int.from_bytes(data, "big", signed=True)
    return as_text(data) if kind == _STRING else data.hex()


def is_event_stream(response: Response) -> bool:
    """Return whether a body starts with a valid message, or has the content type and is not text."""
    body = response.body
    if body is None:
        return False
    first = b""
    for frame in body.frames if isinstance(body, StreamBody) else [raw_bytes(body)]:
        first += frame
        if len(first) >= _PRELUDE:
            break
    if len(first) >= _PRELUDE and crc32(first[:8]) == int.from_bytes(first[8:12], "big"):
        return True
    labelled = response.headers.get("content-type", "").startswith(CONTENT_TYPE)
    return labelled and bool(first) and first.lstrip()[:1] not in (b"{", b"[", b"d", b"e", b":")


def read_events(response: Response) -> AwsEvents:
    """Return every message of the stream, in order, for any chunks."""
    framer = AwsFramer()
    events: list[AwsEvent] = []
    corrupt: list[Corrupt] = []

    def take(message: AwsMessage | Corrupt, ms: int | None) -> None:
        if isinstance(message, Corrupt):
            corrupt.append(message)
        else:
            events.append(_event(message, ms))

    for chunk, ms in zip(*frames_of(response.body), strict=True):
        if framer.between and len(chunk) < _FAST_PATH_LIMIT:  # a tape's chunks are messages: the fast path
            message = parse_message(chunk)
            if isinstance(message, AwsMessage) and int.from_bytes(chunk[:4], "big") == len(chunk):
                events.append(_event(message, ms))
                continue
        for frame in framer.feed(chunk):
            take(parse_message(frame), ms)
    for rest in framer.close():
        take(parse_message(rest), None)
    return AwsEvents(tuple(events), tuple(corrupt))


def _event(message: AwsMessage, ms: int | None) -> AwsEvent:
    headers = message.headers
    kind = string(headers.get(":message-type")) or "event"
    value: Json = load(message.payload) if message.payload else {}
    if isinstance(value, NotJson):
        value = as_text(message.payload)
    if kind == "error":
        name = string(headers.get(":error-code")) or "error"
        return AwsEvent(kind, name, {"message": headers.get(":error-message"), **obj(value)}, ms)
    named = ":exception-type" if kind == "exception" else ":event-type"
    return AwsEvent(kind, string(headers.get(named)) or kind, value, ms)


def error_value(name: str, value: Json) -> JsonObject:
    """Return an error in a stream in the shape that `failures.call_error` reads."""
    details = obj(value)
    message = (
        string(details.get("message")) or string(details.get("Message")) or (value if isinstance(value, str) else name)
    )
    status = details.get("originalStatusCode") or _STATUS.get(name)
    return {"type": "error", "error": {"type": name, "message": message, "status_code": status}}
