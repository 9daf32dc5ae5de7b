"""Walk JSON values without recursion: parsed values can be nested deeper than Python recurses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import orjson

from wiretape.model.jsonvalue import Json, JsonObject

Change: TypeAlias = Callable[[str | None, Json], Json]
Members: TypeAlias = Callable[[JsonObject], JsonObject]


def strings(value: Json) -> Iterator[str]:
    """Every string in a JSON value, in order, without the names of members."""
    left = [iter((value,))]
    while left:
        for item in left[-1]:
            if isinstance(item, str):
                yield item
            elif isinstance(item, dict):
                left.append(iter(item.values()))
                break
            elif isinstance(item, list):
                left.append(iter(item))
                break
        else:
            left.pop()


def rebuilt(value: Json, leaf: Change, members: Members | None = None, closed: Change | None = None) -> Json:
    """A copy of the value with every leaf replaced by `leaf(name, leaf)`; an unchanged part is the same object.

    `name` is the member's name, None in a list. `members(object)` returns the members to keep: the same object for all
    of them. `closed(name, part)` replaces a list or an object after its parts.
    """
    if type(value) is not dict and type(value) is not list:
        return leaf(None, value)
    root = _Open([value], None)
    left = [root]
    while left:
        one = left[-1]
        for place, item in one.parts:
            kind = type(item)
            if kind is dict:
                left.append(_Open(item if members is None else members(item), place))
                break
            if kind is list:
                left.append(_Open(item, place))
                break
            changed = leaf(place if one.named else None, item)
            if changed is not item:
                one.put(place, changed)
        else:
            left.pop()
            if left:
                made = one.made if closed is None else closed(one.place if left[-1].named else None, one.made)
                left[-1].put(one.place, made)
    return root.made[0]


class _Open:
    """A list or an object during the walk. `made` is its copy, made at the first change.

    `place`: its index or name in its parent.
    """

    __slots__ = ("_before", "made", "named", "parts", "place")

    def __init__(self, before: Json, place: Any) -> None:
        self._before = self.made = before
        self.named = type(before) is dict
        self.place = place
        self.parts: Iterator[tuple[Any, Json]] = iter(before.items() if self.named else enumerate(before))

    def put(self, place: Any, part: Json) -> None:
        if self.made is self._before:
            if self._before[place] is part:
                return
            self.made = self._before.copy()
        self.made[place] = part


def parsed(text: str) -> Json:
    """The text parsed as JSON; the text itself if it is not JSON."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def text_of(value: Json) -> str:
    """Compact JSON of any value, also of values that orjson refuses."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return "".join(spelled(value))


def spelled(value: Json, ordered: bool = False) -> Iterator[str]:
    """The pieces of compact JSON, in ASCII. `ordered`: members sorted by name."""
    left: list[Json] = [value]
    while left:
        match left.pop():
            case _Sign() as sign:
                yield sign
            case dict() as members:
                yield "{"
                left.append(_Sign("}"))
                names = sorted(members) if ordered else [*members]
                for place in range(len(names) - 1, -1, -1):
                    name = _Sign(f"{',' if place else ''}{json.dumps(names[place])}:")
                    left += (members[names[place]], name)
            case list() as items:
                yield "["
                left.append(_Sign("]"))
                for place in range(len(items) - 1, -1, -1):
                    left += (items[place], _Sign("," if place else ""))
            case leaf:
                yield json.dumps(leaf)


class _Sign(str):
    """A bracket, comma or colon."""
