"""Reads JSON of any shape: a value of the wrong type counts as absent, and no function raises.

These functions know no provider.
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
    """The type of `NOT_JSON`, which `load` returns for bytes that are not JSON (None is a JSON value)."""


NOT_JSON = NotJson()


def obj(value: Json) -> JsonObject:
    """Return the value if it is an object, else an empty object. Never modify the result."""
    return value if isinstance(value, dict) else _EMPTY


def items(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def string(value: Json) -> str | None:
    """Return a string that is not empty, else None."""
    return value if isinstance(value, str) and value else None


def number(value: Json) -> int | None:
    """Return a whole number of at most 64 bits, else None. A boolean is not a number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if -_LARGEST <= value <= _LARGEST else None  # False for NaN


def first(*values: int | None) -> int | None:
    return next((v for v in values if v is not None), None)


def is_empty(value: Json, depth: int = 4) -> bool:
    """Return whether a value is null, "", [], {} or an object of such values, as some servers send for absent ones."""
    if value is None or value in ("", [], {}):
        return True
    return isinstance(value, dict) and depth > 0 and all(is_empty(v, depth - 1) for v in value.values())


def merge(old: JsonObject | None, new: Json, depth: int = 3) -> JsonObject | None:
    """Return `old` updated with every member of `new` that is not null, recursively."""
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
    """Return compact JSON text, including huge integers, lone surrogates and any depth."""
    try:
        return text_of(value)
    except (TypeError, ValueError):
        return repr(type(value))


def load(data: bytes | str) -> Json | NotJson:
    """Return parsed JSON, or NOT_JSON. NaN and lone surrogates are accepted, because agents send them."""
    try:
        return orjson.loads(data)
    except (ValueError, TypeError):
        pass
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return NOT_JSON


def load_text(data: bytes) -> Json | NotJson:
    """Return parsed JSON, or NOT_JSON. Bytes that are not UTF-8 become replacement characters."""
    value = load(data)
    if value is NOT_JSON and not _is_utf8(data):
        return load(as_text(data))
    return value


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except ValueError:
        return False
    return True


def raw_bytes(body: Body | None) -> bytes:
    """Return the body's bytes; any text can be encoded."""
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
    """Return the JSON value of a body in any stored form, or NOT_JSON."""
    if isinstance(body, JsonBody):
        return body.value
    data = raw_bytes(body).strip()
    return load(data) if data[:1] in (b"{", b"[") else NOT_JSON


def as_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
