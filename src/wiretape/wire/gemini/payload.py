"""Reads Gemini's JSON: keys in two spellings, and responses as one object, events or a list of objects.

An error in an event stream may be bare JSON, without `data:`. Code Assist wraps each object in another.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from wiretape.model.framing import ListFramer
from wiretape.model.http import JsonBody, Response, StreamBody
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.lenient import NOT_JSON, as_text, is_empty, load, number, obj, raw_bytes, string
from wiretape.wire.payload import BLANK, Event, EventPayload, JsonPayload, TextPayload, frames_of, read_payload

_BARE = re.compile(rb"^[{\[]", re.MULTILINE)
_CAPITAL = re.compile(r"[A-Z]")
_SHOWS = frozenset({"candidates", "promptFeedback", "prompt_feedback", "usageMetadata", "usage_metadata"})


@lru_cache(256)
def snake(name: str) -> str:
    return _CAPITAL.sub(lambda found: "_" + found[0].lower(), name)


@lru_cache(1024)
def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def spelled(value: JsonObject, name: str) -> str:
    """Return the key of a member in its actual spelling, given its name in camel case."""
    if value.get(name) is None:
        other = snake(name)
        if value.get(other) is not None:
            return other
    return name


def get(value: JsonObject, name: str) -> Json:
    """Return a member in either spelling, given its name in camel case."""
    found = value.get(name)
    return found if found is not None else value.get(snake(name))


def enum(value: Json) -> str | None:
    """Return an enum value as a string; some clients request numbers."""
    if isinstance(value, str):
        return string(value)
    whole = number(value)
    return None if whole is None else str(whole)


@dataclass(frozen=True, slots=True)
class Chunks:
    """A stream's objects. `ended`: a list's closing bracket was seen; None for events, which have no such end."""

    payload: EventPayload
    ended: bool | None = None


def read_chunks(response: Response) -> Chunks | JsonPayload | TextPayload:
    """Read a response; a JSON list is read as a stream of its elements."""
    body = response.body
    if isinstance(body, JsonBody):
        if isinstance(body.value, list):
            return Chunks(EventPayload([Event("", value, None) for value in body.value]), True)
        return JsonPayload(body.value)
    if raw_bytes(body).lstrip(BLANK)[:1] == b"[" and not (isinstance(body, StreamBody) and body.binary):
        return _read_list(response)
    payload = read_payload(response)
    return Chunks(_with_bare(payload, response)) if isinstance(payload, EventPayload) else payload


def _read_list(response: Response) -> Chunks:
    frames, times = frames_of(response.body)
    whole = load(b"".join(frames).strip(BLANK))
    if isinstance(whole, list):
        when = _when(len(whole), frames, times)
        return Chunks(EventPayload([Event("", value, ms) for value, ms in zip(whole, when, strict=True)]), True)
    framer = ListFramer()
    events: list[Event] = []
    torn: list[str] = []
    for frame, ms in zip(frames, times, strict=False):
        for piece in framer.feed(frame):
            _take(piece, ms, events, torn)
    closed = framer.closed
    _take(b"".join(framer.close()), times[-1] if times else None, events, torn)
    return Chunks(EventPayload(events, unreadable=tuple(torn)), closed)


def _when(count: int, frames: list[bytes], times: list[int | None]) -> list[int | None]:
    """Return the time of each list element."""
    if len(frames) == 1:
        return times * count
    if len(frames) - count in (0, 1):  # tapes keep one frame per element: the fast path
        return times[:count]
    framer = ListFramer()
    when = [ms for frame, ms in zip(frames, times, strict=False) for _ in framer.feed(frame)]
    return when if len(when) == count else times[-1:] * count  # elements that are not objects have no frame


def _take(piece: bytes, ms: int | None, events: list[Event], torn: list[str]) -> None:
    data = piece.lstrip(BLANK + b"[,").rstrip(BLANK)
    if not data or data == b"]":
        return
    value = load(data)
    if value is NOT_JSON:
        torn.append(as_text(data))
    else:
        events.append(Event("", value, ms))


def _with_bare(payload: EventPayload, response: Response) -> EventPayload:
    """Return the events, and the bare JSON values between them."""
    raw = raw_bytes(response.body)
    if b"\r" in raw:
        raw = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if (b"\n{" not in raw and b"\n[" not in raw) or raw.lstrip(BLANK)[:1] == b"{":
        return payload
    found: list[Event] = []
    end = 0
    for start in _BARE.finditer(raw):
        if start.start() >= end:
            end, value = _value_at(raw, start.start())
            found += [Event("", v, None) for v in (value if isinstance(value, list) else [value])]
    return replace(payload, events=payload.events + found)


def _value_at(raw: bytes, start: int) -> tuple[int, Json]:
    """Return the end and the JSON value at this position, up to an empty line."""
    blank = raw.find(b"\n\n", start)
    end = blank if blank >= 0 else len(raw)
    value = load(raw[start:end].strip())
    return end, (as_text(raw[start:end]) if value is NOT_JSON else value)


def unwrapped(value: Json) -> JsonObject:
    """Return an answer without Code Assist's wrapper, with the wrapper's trace id."""
    body = obj(value)
    inner = body.get("response")
    if not isinstance(inner, dict) or not _SHOWS.isdisjoint(body):
        return body
    trace = body.get("traceId")
    return inner if is_empty(trace) or inner.get("responseId") else {**inner, "responseId": trace}
