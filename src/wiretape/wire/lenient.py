"""Reading JSON that may be anything: the wrong type is read as absent, and nothing here raises.

Only functions that look at a JSON value without knowing any provider may live here.
"""

from __future__ import annotations

import json
from typing import Any

import orjson

from wiretape.model.http import Body, BytesBody, JsonBody, StreamBody, TextBody
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.model.jsonwalk import text_of

_EMPTY: dict[str, Any] = {}
_LARGEST = 2**63 - 1


class NotJson:
    """What `load` gives for bytes that are no JSON (None is a JSON value)."""


NOT_JSON = NotJson()


def obj(value: Json) -> JsonObject:
    """The value if it is an object, else an empty one. Never change it."""
    return value if isinstance(value, dict) else _EMPTY


def items(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def string(value: Json) -> str | None:
    """A string that says something, else None."""
    return value if isinstance(value, str) and value else None


def number(value: Json) -> int | None:
    """A whole number, else None (True is no number, and what takes more than 64 bits counts nothing)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if -_LARGEST <= value <= _LARGEST else None  # False for NaN


def first(*values: int | None) -> int | None:
    return next((v for v in values if v is not None), None)


def is_empty(value: Json, depth: int = 4) -> bool:
    """Null, "", [], {}, or an object of nothing else: some servers spell every absent member as a zero value."""
    if value is None or value in ("", [], {}):
        return True
    return isinstance(value, dict) and depth > 0 and all(is_empty(v, depth - 1) for v in value.values())


def merge(old: JsonObject | None, new: Json, depth: int = 3) -> JsonObject | None:
    """`old` overwritten by every member of `new` that is not null, and so inside its details."""
    if not isinstance(new, dict):
        return old
    if not old:
        return new
    merged = dict(old)
    for key, value in new.items():
        if value is None:
            continue
        before = merged.get(key)
        inside = depth > 0 and isinstance(before, dict) and isinstance(value, dict)
        merged[key] = merge(before, value, depth - 1) if inside else value
    return merged


def dumps(value: Json) -> str:
    """Compact JSON text, also of huge integers, lone surrogates and any depth."""
    try:
        return text_of(value)
    except (TypeError, ValueError):
        return repr(type(value))


def load(data: bytes | str) -> Json | NotJson:
    """Parsed JSON, or NOT_JSON. NaN and lone surrogates are accepted: agents do send them."""
    try:
        return orjson.loads(data)
    except (ValueError, TypeError):
        pass
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return NOT_JSON


def raw_bytes(body: Body | None) -> bytes:
    """The body's bytes, whatever strange text it holds."""
    match body:
        case None:
            return b""
        case JsonBody():
            return dumps(body.value).encode("utf-8", "surrogatepass")
        case StreamBody():
            return b"".join(body.frames)
        case TextBody():
            return body.text.encode("utf-8", "surrogatepass")
        case BytesBody():
            return body.data


def body_json(body: Body | None) -> Json | NotJson:
    """The JSON value that a body holds, whatever shape it is stored in."""
    if isinstance(body, JsonBody):
        return body.value
    data = raw_bytes(body).strip()
    return load(data) if data[:1] in (b"{", b"[") else NOT_JSON


def as_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
