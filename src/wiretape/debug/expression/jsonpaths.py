"""JSONPath over a call: all names as one JSON document. The library is imported when it is asked for."""

from __future__ import annotations

import re
from collections.abc import Container

from wiretape.debug.annotated_run import World
from wiretape.debug.expression.names import NAMES
from wiretape.debug.expression.values import to_json
from wiretape.debug.timeline import Stop
from wiretape.errors import UsageError
from wiretape.model.jsonvalue import Json, JsonObject


def found_by_jsonpath(world: World, stop: Stop, path: str) -> Json:
    """Everything that a JSONPath finds at a stop, as a list. Raises UsageError for a path that is none."""
    import jsonpath

    try:
        compiled = jsonpath.compile(path)
    except (jsonpath.JSONPathError, RecursionError) as error:
        raise UsageError(f"{path} is no JSONPath: {' '.join(str(error).split())}") from None
    document = call_document(world, stop, _wanted(path))
    try:
        return list(compiled.findall(document))
    except (jsonpath.JSONPathError, RecursionError) as error:
        raise UsageError(f"{path} cannot be followed: {' '.join(str(error).split())}") from None


def call_document(world: World, stop: Stop, names: Container[str] = NAMES) -> JsonObject:
    """A call as one JSON document, or some members of it."""
    return {name.name: to_json(name.get(world, stop)) for name in NAMES.values() if name.name in names}


_FIRST = re.compile(r"\$(?:\.(\w+)|\[['\"](\w+)['\"]\])")


def _wanted(path: str) -> Container[str]:
    """The member that a path begins with, so that no other is spelled out; where it is open, all but the wire's own."""
    match = _FIRST.match(path)
    return {match[1] or match[2]} if match is not None else NAMES.keys() - {"wire", "body"}
