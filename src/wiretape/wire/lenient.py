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


class Unreadable:
    """What `load` gives for bytes that are no JSON (None is a JSON value)."""


UNREADABLE = Unreadable()


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


def dumps(value: Json) -> str:
    """Compact JSON text, also of huge integers, lone surrogates and any depth."""
    try:
        return text_of(value)
    except (TypeError, ValueError):
        return repr(type(value))


def load(data: bytes | str) -> Json | Unreadable:
    """Parsed JSON, or UNREADABLE. NaN and lone surrogates are accepted: agents do send them."""
    try:
        return orjson.loads(data)
    except (ValueError, TypeError):
        pass
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return UNREADABLE


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


def body_json(body: Body | None) -> Json | Unreadable:
    """The JSON value that a body holds, whatever shape it is stored in."""
    if isinstance(body, JsonBody):
        return body.value
    data = raw_bytes(body).strip()
    return load(data) if data[:1] in (b"{", b"[") else UNREADABLE


def as_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
