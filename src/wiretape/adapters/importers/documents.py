"""Parses JSON and YAML files. YAML tags of Python and Ruby are read as the plain values behind them.

No tag makes an object, imports a module or calls a function.
"""

from __future__ import annotations

import base64
import binascii
import json
from functools import cache
from typing import Any

import orjson

from wiretape.errors import WiretapeError
from wiretape.model.jsonvalue import Json
from wiretape.tape.format.codings import most_decoded, too_large

_EACH = 50  # bytes of a value in memory, besides its text
_ENDLESS = 1 << 62
_TIMESTAMP = "tag:yaml.org,2002:timestamp"


class ImportRefused(WiretapeError):
    """An entry or a file cannot be imported; the message says why."""


def parse_json(data: bytes) -> Json:
    """Parse JSON, also with NaN, lone surrogates or a byte order mark. Raises ImportRefused."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        try:
            return json.loads(data.decode("utf-8-sig"))
        except (ValueError, RecursionError) as error:
            raise ImportRefused(f"is not JSON: {error}") from None


def parse_yaml(data: bytes) -> Json:
    """Parse a YAML text with one document. Raises ImportRefused."""
    import yaml

    loader = _loader()(data)
    try:
        value = loader.get_data() if loader.check_data() else None
        if loader.check_data():
            raise ImportRefused("has several YAML documents; put each in its own file")
        if b"*" in data and unfolded(value, {}) > (limit := most_decoded(len(data))):
            raise ImportRefused(f"is refused: its YAML aliases unfold to {too_large(limit)}")
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ImportRefused(f"is not YAML: {' '.join(str(error).split())[:200]}") from None
    finally:
        loader.dispose()
    return value


@cache
def _loader() -> Any:
    """Return PyYAML's safe loader (in C if available), which keeps text that looks like a date."""
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader: Any = type("PlainLoader", (base,), {})
    loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in pairs if tag != _TIMESTAMP]
        for first, pairs in base.yaml_implicit_resolvers.items()
    }
    for tag in ("!binary", "tag:yaml.org,2002:binary"):
        loader.add_constructor(tag, _binary)
    loader.add_multi_constructor("", _plain)
    return loader


def _binary(loader: Any, node: Any) -> bytes:
    text = loader.construct_scalar(node)
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"line {node.start_mark.line + 1}: a !!binary that is not base64: {error}") from None


def _plain(loader: Any, tag: str, node: Any) -> Any:
    """Return the plain value behind an unknown tag."""
    match node.id:
        case "mapping":
            value = loader.construct_mapping(node, deep=True)
            return _text_of(tag, value.get("args")) or value
        case "sequence":
            values = loader.construct_sequence(node, deep=True)
            return _text_of(tag, values) or values
        case _:
            return loader.construct_scalar(node)


def _text_of(tag: str, values: Any) -> str | None:
    """Return the text of an object whose class is a subclass of str, such as aiohttp's names of headers."""
    if "python/object/" in tag and isinstance(values, list) and len(values) == 1 and isinstance(values[0], str):
        return values[0]
    return None


def unfolded(value: Any, seen: dict[int, int]) -> int:
    """Estimate the bytes of a value when its aliases are unfolded. A value that contains itself is endless."""
    if isinstance(value, str | bytes):
        return _EACH + len(value)
    if not isinstance(value, dict | list):
        return _EACH
    known = seen.get(id(value))
    if known is not None:
        return known
    seen[id(value)] = _ENDLESS
    inner = [*value, *value.values()] if isinstance(value, dict) else value
    seen[id(value)] = total = _EACH + sum(unfolded(one, seen) for one in inner)
    return total
