"""Differences of JSON values as RFC 6902 patches, and applying them without touching the original.

`diff` relies on shared objects: parts that are the very same object are never looked into. `apply` copies the path to
what changes and nothing else, so unchanged parts stay the same objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from wiretape.model.jsonvalue import Json, JsonObject

Patch = list[JsonObject]


def same(a: Json, b: Json) -> bool:
    """Equal as spelled: `True` is not 1, 1 is not 1.0, and the order of members counts."""
    if a is b:
        return True
    return type(a) is type(b) and orjson.dumps(a) == orjson.dumps(b)


def pointer(*parts: str | int) -> str:
    """A JSON pointer."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def segments(path: str) -> list[str]:
    """The reference tokens of a JSON pointer. Raises ValueError for anything else."""
    if not path:
        return []
    if not path.startswith("/"):
        raise ValueError(f"{path!r} is no JSON pointer")
    return [part.replace("~1", "/").replace("~0", "~") for part in path[1:].split("/")]


# -- making ------------------------------------------------------------------------------------------------------


def diff(old: JsonObject, new: JsonObject) -> tuple[Patch, list[str] | None]:
    """The patch that makes `new` of `old`, and the order of members at the root if patching gives another."""
    patch = list(_members(old, new, ""))
    order = list(new)
    return patch, None if _patched_order(old, new) == order else order


def _patched_order(old: JsonObject, new: JsonObject) -> list[str]:
    return [key for key in old if key in new] + [key for key in new if key not in old]


def _members(old: JsonObject, new: JsonObject, path: str) -> Iterator[JsonObject]:
    for key in old:
        if key not in new:
            yield {"op": "remove", "path": path + pointer(key)}
    for key, value in new.items():
        if key not in old:
            yield {"op": "add", "path": path + pointer(key), "value": value}
        elif value is not old[key]:
            yield from _change(old[key], value, path + pointer(key))


def _change(old: Json, new: Json, path: str) -> Iterator[JsonObject]:
    """How to make `new` of `old` at this place: reaching inside where that is shorter than replacing it."""
    whole = {"op": "replace", "path": path, "value": new}
    if isinstance(old, list) and isinstance(new, list) and old and new and old[0] is new[0]:
        yield from _elements(old, new, path)  # a growing history: comparing or encoding all of it would be slow
        return
    if same(old, new):
        return
    if isinstance(old, dict) and isinstance(new, dict) and _patched_order(old, new) == list(new):
        inner = list(_members(old, new, path))
    elif isinstance(old, list) and isinstance(new, list) and old and new:
        inner = list(_elements(old, new, path))
    else:
        yield whole
        return
    yield from inner if len(inner) == 1 or _shorter(inner, whole) else [whole]


def _shorter(patch: Patch, whole: JsonObject) -> bool:
    return len(orjson.dumps(patch)) < len(orjson.dumps(whole))


def _elements(old: Sequence[Json], new: Sequence[Json], path: str) -> Iterator[JsonObject]:
    """Walk both lists; where they part, see which side has something more than the other."""
    start = _shared_head(old, new)
    old_at = _positions(old, start)
    new_at = _positions(new, start)
    keys_old = [_key(value) for value in old[start:]]
    keys_new = [_key(value) for value in new[start:]]
    i = j = 0
    at = start  # position in the list as patched so far
    while i < len(keys_old) and j < len(keys_new):
        if keys_old[i] == keys_new[j]:
            i, j, at = i + 1, j + 1, at + 1
        elif (found := old_at.get(keys_new[j], -1)) > i:
            yield from ({"op": "remove", "path": path + pointer(at)} for _ in range(found - i))
            i = found
        elif (found := new_at.get(keys_old[i], -1)) > j:
            for value in new[start + j : start + found]:
                yield {"op": "add", "path": path + pointer(at), "value": value}
                at += 1
            j = found
        else:
            yield from _change(old[start + i], new[start + j], path + pointer(at))
            i, j, at = i + 1, j + 1, at + 1
    yield from ({"op": "remove", "path": path + pointer(at)} for _ in range(len(keys_old) - i))
    yield from ({"op": "add", "path": path + "/-", "value": value} for value in new[start + j :])


def _shared_head(old: Sequence[Json], new: Sequence[Json]) -> int:
    for index, (a, b) in enumerate(zip(old, new, strict=False)):
        if a is not b and not same(a, b):
            return index
    return min(len(old), len(new))


def _key(value: Json) -> bytes:
    return orjson.dumps(value)


def _positions(values: Sequence[Json], start: int) -> dict[bytes, int]:
    """The last index of each value, counted from `start`."""
    return {_key(value): index for index, value in enumerate(values[start:])}


# -- applying ----------------------------------------------------------------------------------------------------


def apply(value: Json, patch: Sequence[JsonObject], keys: Sequence[str] | None = None) -> Json:
    """The patched value; `value` itself is not changed. Raises ValueError naming the operation that does not fit."""
    fresh: set[int] = set()  # containers that are already our own copies
    keep: list[Any] = []  # ... kept alive, so that their ids stay theirs
    for number, operation in enumerate(patch):
        try:
            value = _apply_one(value, operation, fresh, keep)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            place = operation.get("path") if isinstance(operation, dict) else operation
            raise ValueError(f"patch[{number}] ({place}) does not fit what it changes: {error}") from None
    return _ordered(value, keys) if keys is not None else value


def _ordered(value: Json, keys: Sequence[str]) -> Json:
    if not isinstance(value, dict) or sorted(value) != sorted(keys):
        raise ValueError("keys: not the members of the patched value")
    return {key: value[key] for key in keys}


def _apply_one(root: Json, operation: JsonObject, fresh: set[int], keep: list[Any]) -> Json:
    op, parts = operation["op"], segments(operation["path"])
    if op not in ("add", "remove", "replace"):
        raise ValueError(f"unknown operation {op!r}")
    if not parts:
        if op == "remove":
            raise ValueError("the root cannot be removed")
        return operation["value"]

    def own(container: Json) -> Json:
        if id(container) in fresh:
            return container
        if not isinstance(container, dict | list):
            raise TypeError(f"{type(container).__name__} has no members")
        copy = container.copy()
        fresh.add(id(copy))
        keep.append(copy)
        return copy

    root = here = own(root)
    for part in parts[:-1]:
        key = _index(here, part) if isinstance(here, list) else part
        inner = own(here[key])
        here[key] = inner
        here = inner
    _edit(here, op, parts[-1], operation)
    return root


def _edit(here: Json, op: str, last: str, operation: JsonObject) -> None:
    if isinstance(here, list):
        if op == "add":
            here.insert(len(here) if last == "-" else _index(here, last, add=True), operation["value"])
        elif op == "remove":
            del here[_index(here, last)]
        else:
            here[_index(here, last)] = operation["value"]
    elif op == "remove":
        del here[last]
    elif op == "replace" and last not in here:
        raise KeyError(last)
    else:
        here[last] = operation["value"]


def _index(values: list[Json], part: str, add: bool = False) -> int:
    if not part.isascii() or not part.isdigit():
        raise ValueError(f"{part!r} is no position in a list")
    index = int(part)
    if index >= len(values) + add:
        raise IndexError(f"the list has {len(values)} elements")
    return index
