"""Where the tools on offer stop being those of the call before. Order counts, of tools and of keys: caches see it."""

from __future__ import annotations

import orjson

from wiretape.analyze.moved import Break, moved
from wiretape.model.call import CallRequest
from wiretape.model.jsonvalue import Json, JsonObject

_WHAT = "tools changed"


def tools_break(before: CallRequest, after: CallRequest) -> Break | None:
    """The first difference between two lists of tools."""
    if before.tools == after.tools:  # the very same objects
        return None
    for index, (old, new) in enumerate(zip(before.tools, after.tools, strict=False)):
        if old is not new and spelled(old.raw) != spelled(new.raw):
            if old.name != new.name:
                return Break(f"tools[{index}]", _WHAT, old.name, new.name)
            return value_break(f"tools[{index}]", old.raw, new.raw)
    return _count_break(before, after)


def _count_break(before: CallRequest, after: CallRequest) -> Break | None:
    shorter = min(len(before.tools), len(after.tools))
    if len(before.tools) > shorter:
        return Break(f"tools[{shorter}]", _WHAT, before.tools[shorter].name, None)
    if len(after.tools) > shorter:
        return Break(f"tools[{shorter}]", _WHAT, None, after.tools[shorter].name)
    return None


def value_break(path: str, old: Json, new: Json) -> Break:
    """The first difference between two JSON values that are spelled differently."""
    if isinstance(old, dict) and isinstance(new, dict):
        return _object_break(path, old, new)
    if isinstance(old, list) and isinstance(new, list):
        for index, (one, other) in enumerate(zip(old, new, strict=False)):
            if spelled(one) != spelled(other):
                return value_break(f"{path}[{index}]", one, other)
        return Break(f"{path}[{min(len(old), len(new))}]", _WHAT, f"{len(old)} elements", f"{len(new)} elements")
    if isinstance(old, str) and isinstance(new, str):
        change = moved(old, new)
        return Break(path, _WHAT, change.before, change.after, change.character)
    return Break(path, _WHAT, spelled(old), spelled(new))


def _object_break(path: str, old: JsonObject, new: JsonObject) -> Break:
    for name in dict.fromkeys((*old, *new)):
        if name not in new:
            return Break(f"{path}.{name}", _WHAT, spelled(old[name]), None)
        if name not in old:
            return Break(f"{path}.{name}", _WHAT, None, spelled(new[name]))
        if spelled(old[name]) != spelled(new[name]):
            return value_break(f"{path}.{name}", old[name], new[name])
    return Break(path, f"{_WHAT}, in the order of their keys", ", ".join(old), ", ".join(new))


def spelled(value: Json) -> str:
    """A JSON value as compact text, keys in their own order."""
    try:
        return orjson.dumps(value).decode()
    except (TypeError, orjson.JSONEncodeError):  # integers beyond 64 bits
        return repr(value)
