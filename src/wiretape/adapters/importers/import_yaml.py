"""Reads YAML as data, whoever wrote it: tags of Python and Ruby are read as the plain value they stand on.

Nothing is ever made an object of, imported or called.
"""

from __future__ import annotations

import base64
import binascii
from functools import cache
from typing import Any

from wiretape.adapters.importers.import_source import CannotTake
from wiretape.model.jsonvalue import Json
from wiretape.tape.format.codings import most_decoded, too_large

_EACH = 50  # bytes that a value takes in memory, beside its text
_ENDLESS = 1 << 62
_TIMESTAMP = "tag:yaml.org,2002:timestamp"


def parse_yaml(data: bytes) -> Json:
    """The document of a YAML text. Raises CannotTake."""
    import yaml

    loader = _loader()(data)
    try:
        value = loader.get_data() if loader.check_data() else None
        if loader.check_data():
            raise CannotTake("holds several YAML documents; put each in a file of its own")
        if b"*" in data and unfolded(value, {}) > (limit := most_decoded(len(data))):
            raise CannotTake(f"is refused: its YAML aliases unfold to {too_large(limit)}")
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise CannotTake(f"is not YAML: {' '.join(str(error).split())[:200]}") from None
    finally:
        loader.dispose()
    return value


@cache
def _loader() -> Any:
    """PyYAML's safe loader, in C where that is there, without the dates that it makes of text that looks like one."""
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
    """What stands behind a tag that we do not know."""
    match node.id:
        case "mapping":
            return loader.construct_mapping(node, deep=True)
        case "sequence":
            return loader.construct_sequence(node, deep=True)
        case _:
            return loader.construct_scalar(node)


def unfolded(value: Any, seen: dict[int, int]) -> int:
    """About how many bytes this takes once its aliases are unfolded; a value inside itself counts as endless."""
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
