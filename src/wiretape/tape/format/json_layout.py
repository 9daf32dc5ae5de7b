"""How a JSON text is spelled: which layout gives its bytes back, and what JSON values cannot carry.

orjson silently turns integers of 64 bits and more into floats and loses duplicate keys and `-0`: bytes that no layout
gives back are read a second time, strictly, with the standard library.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import orjson

from wiretape.model.http import Layout
from wiretape.model.jsonvalue import Json

SEPARATORS: Final[dict[str, tuple[bytes, bytes]]] = {"compact": (b",", b":"), "spaced": (b", ", b": ")}
_BIGGEST = 2**64
_LONG = 64 * 1024  # characters of a text


class NotCarried(ValueError):
    """The text is not JSON, or parsing would change its values."""


def element_encoder(layout: Layout, ascii: bool) -> Callable[[Json], bytes]:
    """Spells a part of a value; for the layouts without line breaks, where a part looks the same anywhere."""
    if layout == "compact" and not ascii:
        return orjson.dumps
    comma, colon = (mark.decode() for mark in SEPARATORS[layout])
    encode = json.JSONEncoder(ensure_ascii=ascii, separators=(comma, colon)).encode

    def spelled(value: Json) -> bytes:
        # Text is spelled alike by both encoders, and orjson takes a tenth of the time, in which no other thread runs.
        if isinstance(value, str) and not ascii:
            return orjson.dumps(value)
        if isinstance(value, dict) and not ascii and any(len(v) > _LONG for v in value.values() if isinstance(v, str)):
            members = (b"%b%b%b" % (spelled(name), colon.encode(), spelled(member)) for name, member in value.items())
            return b"{%b}" % comma.encode().join(members)
        return encode(value).encode()

    return spelled


def spellings(raw: bytes) -> list[tuple[Layout, bool]]:
    """Layouts that `raw` may be spelled in, likeliest first, and whether non-ASCII is escaped."""
    head = raw[:512]
    if head[:2] in (b"{\n", b"[\n"):
        layouts: list[Layout] = ["indent4" if head[2:6] == b"    " else "indent2"]
    else:
        colon = head.find(b'":')
        spaced = head[colon + 2 : colon + 3] == b" " if colon >= 0 else b", " in head
        layouts = ["spaced", "compact"] if spaced else ["compact", "spaced"]
    escapes = [False, True] if raw.isascii() and b"\\u" in raw else [False]
    return [(layout, ascii) for layout in layouts for ascii in escapes]


def loads(raw: bytes) -> Json:
    """Parse. Raises NotCarried for text that orjson refuses: NaN, lone surrogates, anything that is not JSON."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise NotCarried(str(error)) from None


def too_deep(error: Exception) -> NotCarried:
    """orjson reads deeper nesting than it, or the standard library, writes."""
    return NotCarried(f"cannot be written as JSON: {error}")


def check_values(raw: bytes, value: Json) -> None:
    """Raises NotCarried unless `value`, as orjson read it, is all that `raw` says."""
    try:
        strict = json.loads(
            raw, object_pairs_hook=_unique, parse_int=_whole, parse_float=_finite, parse_constant=_refuse
        )
    except (ValueError, RecursionError) as error:
        raise NotCarried(str(error)) from None
    try:
        if orjson.dumps(strict) != orjson.dumps(value):
            raise NotCarried("the two parsers disagree")
    except (TypeError, orjson.JSONEncodeError) as error:
        raise NotCarried(str(error)) from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("duplicate keys")
    return made


def _whole(text: str) -> int:
    value = int(text)
    if text == "-0" or not -(_BIGGEST // 2) <= value < _BIGGEST:
        raise ValueError(f"{text} would change")
    return value


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{text} would change")
    return value


def _refuse(text: str) -> Json:
    raise ValueError(f"{text} is no JSON")
