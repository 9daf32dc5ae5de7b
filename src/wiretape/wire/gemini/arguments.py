"""A Gemini function call whose arguments come in pieces, each with the JSON path of the value that it belongs to."""

from __future__ import annotations

import re
from typing import Any

from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.gemini.keys import spelled
from wiretape.wire.lenient import items

_STEP = re.compile(r"""\.?([^.\[\]]+)|\[(\d{1,6})\]|\[(['"])(.*?)\3\]""")
_VALUES = ("stringValue", "numberValue", "boolValue")


class Arguments:
    """One call under way. `call` is the object that it becomes; its `args` grow."""

    __slots__ = ("_root", "_strings", "call")

    def __init__(self, call: JsonObject) -> None:
        self.call = dict(call)
        given = call.get("args")
        self._root: Any = dict(given) if isinstance(given, dict) else {}
        self._strings: dict[str, list[str]] = {}
        self.call["args"] = self._root

    def add(self, piece: JsonObject) -> None:
        path = piece.get(spelled(piece, "jsonPath"))
        if not isinstance(path, str):
            self._odd(piece)
            return
        key = next((k for name in _VALUES if piece.get(k := spelled(piece, name)) is not None), None)
        value = piece[key] if key is not None else None
        if isinstance(value, str) and path in self._strings:
            self._strings[path].append(value)
        elif not self._put(path, value):
            self._odd(piece)
        elif isinstance(value, str):
            self._strings[path] = [value]

    def settle(self) -> None:
        """Put strings together that came in pieces."""
        for path, pieces in self._strings.items():
            self._put(path, "".join(pieces))

    def _odd(self, piece: JsonObject) -> None:
        """A piece that fits nowhere is kept beside the arguments."""
        self.call["partialArgs"] = [*items(self.call.get("partialArgs")), piece]

    def _put(self, path: str, value: Json) -> bool:
        steps = _steps(path)
        if not steps:
            return False
        place = self._root
        for step, following in zip(steps, [*steps[1:], None], strict=True):
            if isinstance(step, int) != isinstance(place, list):
                return False
            if isinstance(step, int):
                if step > len(place):
                    return False
                if step == len(place):
                    place.append(None)
            if following is None:
                place[step] = value
                return True
            inner = place[step] if isinstance(step, int) else place.get(step)
            if inner is None:
                inner = place[step] = [] if isinstance(following, int) else {}
            if not isinstance(inner, dict | list):
                return False
            place = inner
        return False


def _steps(path: str) -> list[str | int]:
    """`$.items[0].name` as its steps; none if it cannot be read."""
    rest = path.removeprefix("$")
    steps: list[str | int] = []
    at = 0
    while at < len(rest):
        found = _STEP.match(rest, at)
        if found is None:
            return []
        name, index, _, quoted = found.groups()
        steps.append(int(index) if index is not None else name if name is not None else quoted)
        at = found.end()
    return steps
