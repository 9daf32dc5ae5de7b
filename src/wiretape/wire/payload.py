"""Determines by its bytes what a response body is: one JSON value, a stream of JSON events, or plain text.

The request's `stream` and the content type do not decide: proxies answer streaming requests with JSON and plain
requests with events, with wrong labels on both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from wiretape.model.http import Body, JsonBody, Response, StreamBody
from wiretape.model.jsonvalue import Json
from wiretape.wire.lenient import NOT_JSON, NotJson, as_text, load_text, raw_bytes
from wiretape.wire.sse import NdjsonDecoder, SseDecoder

_SSE_LINE = re.compile(rb"(?:data|event|id|retry)?:", re.IGNORECASE)
BLANK = b" \t\r\n\xef\xbb\xbf"


class Event(NamedTuple):
    """One event of a stream. `ms` counts from the response's headers; None if the tape has no times."""

    name: str
    value: Json
    ms: int | None


@dataclass(frozen=True, slots=True)
class JsonPayload:
    value: Json


@dataclass(frozen=True, slots=True)
class EventPayload:
    """A stream of events. `done`: it has a `[DONE]`. `unreadable`: data that is not JSON, such as a torn last event."""

    events: list[Event]
    done: bool = False
    unreadable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TextPayload:
    """Any other body: an HTML error page, truncated JSON, or nothing."""

    text: str


Payload: TypeAlias = JsonPayload | EventPayload | TextPayload


def read_payload(response: Response) -> Payload:
    """Determine the kind of the response's body and parse it."""
    body = response.body
    if isinstance(body, JsonBody):
        return JsonPayload(body.value)
    frames, times = frames_of(body)
    if isinstance(body, StreamBody) and body.binary:
        return TextPayload(as_text(b"".join(frames)))
    head = _head(frames)
    if head[:1] in (b"{", b"["):
        value = load_text(b"".join(frames).strip(BLANK))
        if not isinstance(value, NotJson):
            return JsonPayload(value)
        if b"\n" not in b"".join(frames).strip():
            return TextPayload(as_text(b"".join(frames)))
        lines = _read(NdjsonDecoder(), frames, times)
        return lines if lines.events else TextPayload(as_text(b"".join(frames)))
    if _SSE_LINE.match(head) or (head and "event-stream" in response.headers.get("content-type", "")):
        return _read(SseDecoder(), frames, times)
    return TextPayload(as_text(b"".join(frames)))


def frames_of(body: Body | None) -> tuple[list[bytes], list[int | None]]:
    """Return the chunks of a body, and the time of each: None if the tape has no times."""
    if isinstance(body, StreamBody):
        frames = list(body.frames)
        times: list[int | None] = [*body.ms[: len(frames)]]
        return frames, times + [None] * (len(frames) - len(times))
    return [raw_bytes(body)], [None]


def _head(frames: Iterable[bytes]) -> bytes:
    head = b""
    for frame in frames:
        head = (head + frame).lstrip(BLANK)
        if len(head) >= 16:
            break
    return head


def _read(decoder: SseDecoder | NdjsonDecoder, frames: list[bytes], times: list[int | None]) -> EventPayload:
    events: list[Event] = []
    unreadable: list[str] = []
    done = False
    last = times[-1] if times else None
    for chunk, ms in [*zip(frames, times, strict=True), (None, last)]:
        for name, data, _ in decoder.close() if chunk is None else decoder.feed(chunk):
            value = load_text(data)
            if value is not NOT_JSON:
                events.append(Event(name, value, ms))
            elif data.strip() == b"[DONE]":
                done = True
            elif data.strip():
                unreadable.append(as_text(data))
    return EventPayload(events, done, tuple(unreadable))
