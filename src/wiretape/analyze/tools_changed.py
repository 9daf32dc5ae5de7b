"""Where the tools on offer stop being those of the call before. Order counts, of tools and of keys: caches see it."""

from __future__ import annotations

import orjson

from wiretape.analyze.moved import Break, moved
from wiretape.model.call import CallRequest
from wiretape.model.jsonvalue import Json, JsonObject

_WHAT = "a tool's definition"
REORDERED = "another order of the tools"
ANOTHER_TOOL = "another tool"
_MARKERS = frozenset({"cache_control", "cachePoint"})


def tools_break(before: CallRequest, after: CallRequest) -> Break | None:
    """The first difference between two lists of tools."""
    if before.tools == after.tools:  # the very same objects
        return None
    for index, (old, new) in enumerate(zip(before.tools, after.tools, strict=False)):
        if old is new:
            continue
        one, other = without_markers(old.raw), without_markers(new.raw)
        if spelled(one) != spelled(other):
            if old.name != new.name:
                return _other_tools(f"tools[{index}]", before, after, index)
            return value_break(f"tools[{index}]", one, other)
    shorter = min(len(before.tools), len(after.tools))
    if len(before.tools) == len(after.tools):
        return None
    return _other_tools(f"tools[{shorter}]", before, after, shorter)


def _other_tools(path: str, before: CallRequest, after: CallRequest, index: int) -> Break:
    """From `index` on the tools are not the same ones: another order, or some that came or went."""
    old, new = [tool.name for tool in before.tools], [tool.name for tool in after.tools]
    if sorted(old) == sorted(new):
        return Break(path, REORDERED, ", ".join(old[index:]), ", ".join(new[index:]))
    gone = [name for name in old[index:] if name not in new]
    come = [name for name in new[index:] if name not in old]
    return Break(path, ANOTHER_TOOL, ", ".join(gone) or None, ", ".join(come) or None)


def without_markers(raw: Json) -> Json:
    """A tool's definition without its cache markers; the very same object where it has none."""
    if isinstance(raw, dict) and not _MARKERS.isdisjoint(raw):
        return {key: value for key, value in raw.items() if key not in _MARKERS}
    return raw


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
        return Break(path, _WHAT, change.before, change.after, change.character, change.around, change.place)
    return Break(path, _WHAT, spelled(old), spelled(new))


def _object_break(path: str, old: JsonObject, new: JsonObject) -> Break:
    for name in dict.fromkeys((*old, *new)):
        if name not in new:
            return Break(f"{path}.{name}", _WHAT, spelled(old[name]), None)
        if name not in old:
            return Break(f"{path}.{name}", _WHAT, None, spelled(new[name]))
        if spelled(old[name]) != spelled(new[name]):
            return value_break(f"{path}.{name}", old[name], new[name])
    return Break(path, f"{_WHAT}, in the order of its keys", ", ".join(old), ", ".join(new))


def spelled(value: Json) -> str:
    """A JSON value as compact text, keys in their own order."""
    try:
        return orjson.dumps(value).decode()
    except (TypeError, orjson.JSONEncodeError):  # integers beyond 64 bits
        return repr(value)
