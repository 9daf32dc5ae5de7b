"""JSONPath over a call: all names as one JSON document. The library is imported when it is asked for."""

from __future__ import annotations

from wiretape.debug.names import NAMES
from wiretape.debug.timeline import Stop
from wiretape.debug.values import to_json
from wiretape.debug.world import World
from wiretape.errors import UsageError
from wiretape.model.jsonvalue import Json, JsonObject


def found_by_jsonpath(world: World, stop: Stop, path: str) -> Json:
    """Everything that a JSONPath finds at a stop, as a list. Raises UsageError for a path that is none."""
    import jsonpath

    try:
        compiled = jsonpath.compile(path)
    except (jsonpath.JSONPathError, RecursionError) as error:
        raise UsageError(f"{path} is no JSONPath: {' '.join(str(error).split())}") from None
    document = call_document(world, stop, wire="wire" in path)
    try:
        return list(compiled.findall(document))
    except (jsonpath.JSONPathError, RecursionError) as error:
        raise UsageError(f"{path} cannot be followed: {' '.join(str(error).split())}") from None


def call_document(world: World, stop: Stop, wire: bool = True) -> JsonObject:
    """A call as one JSON document."""
    return {name.name: to_json(name.get(world, stop)) for name in NAMES.values() if wire or name.name != "wire"}
