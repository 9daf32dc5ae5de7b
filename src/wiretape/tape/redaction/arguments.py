"""Where a model wrote the arguments of a tool call: in a JSON value by the names around, in raw JSON as regions.

A credential that the model itself wrote there stays on the tape, because the replayed tool must be called with it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_ALWAYS = frozenset({"arguments", "partial_json"})
_TYPES = ("tool_use", "tool_call", "_call", "functionCall")
_DELTAS = ("arguments.delta", "input.delta")


def holds_arguments(value: Mapping[str, Any], name: str) -> bool:
    """Whether the member `name` of an object is what a model wrote as a tool's arguments."""
    if name in _ALWAYS:
        return not isinstance(value.get(name), list)  # a prompt's declared arguments are a list
    kind = value.get("type")
    if name == "args":
        return "name" in value
    if name in ("input", "parameters"):
        called = isinstance(kind, str) and kind.endswith(_TYPES)
        return called or "toolUseId" in value or (value.keys() == {"input"} and isinstance(value[name], str))
    return name == "delta" and isinstance(kind, str) and kind.endswith(_DELTAS)


def patches_arguments(names: Sequence[str]) -> bool:
    """Whether a JSON patch operation on the member that `names` leads to is inside a tool's arguments."""
    return any(name in ("arguments", "input", "args", "partial_json") for name in names[1:])


_OPENS = re.compile(
    r'"(?:(?P<always>arguments|partial_json)|(?P<perhaps>input|args|parameters|delta))"\s{0,4}:\s{0,4}(?P<value>["{])'
)
_SAYS = re.compile(r"tool_?[uU]se|tool_call|unction_?[cC]all|arguments\.delta|input\.delta|custom_tool")
_AROUND = 400
_MOST_UNREAD = 1024 * 1024
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}]', re.DOTALL)
_STRING_END = re.compile(r'(?:[^"\\]|\\.)*+"', re.DOTALL)


class Regions:
    """Finds the parts of a raw JSON body, received in chunks, that are arguments written by a model.

    Chunks are kept, and read only after a credential has been found.
    """

    def __init__(self, data: bytes = b"") -> None:
        self._unread = [data]
        self._size = 0
        self._tail = ""  # the end of the text that was read
        self._depth = 0  # of braces in the object that is open
        self._string = False  # a string is open
        self._object = False  # inside the arguments' object, or the string is all there is

    def add(self, data: bytes) -> None:
        """Note the next chunk."""
        self._unread.append(data)
        self._size += len(data)
        if self._size > _MOST_UNREAD:
            self.last()

    def last(self) -> list[tuple[int, int]]:
        """The regions in the chunk that was added last."""
        *before, last = self._unread
        if before:
            self._read(b"".join(before))
        self._unread, self._size = [b""], 0
        return self._read(last)

    def _read(self, data: bytes) -> list[tuple[int, int]]:
        text = data.decode("utf-8", "surrogateescape")
        found: list[tuple[int, int]] = []
        whole = self._tail + text
        skip = len(self._tail)
        at = skip
        if self._is_open():
            end = self._close(whole, at)
            found.append((0, end - skip))
            at = end
        opened = _OPENS.search(whole, max(0, at - 64 if at == skip else at))
        while opened:
            if opened.end() > skip and self._counts(whole, opened):
                self._string, self._object = opened["value"] == '"', opened["value"] == "{"
                self._depth = 1 if self._object else 0
                end = self._close(whole, opened.end())
                found.append((max(0, opened.end() - skip), end - skip))
            else:
                end = opened.end()
            opened = _OPENS.search(whole, end)
        self._tail = whole[-_AROUND:]
        return found

    def _is_open(self) -> bool:
        return self._string or self._object

    def _counts(self, whole: str, opened: re.Match[str]) -> bool:
        if opened["always"]:
            return True
        around = whole[max(0, opened.start() - _AROUND) : opened.start()]
        return _SAYS.search(around) is not None

    def _close(self, whole: str, at: int) -> int:
        """Read on in the open value; where it ends, or the end of the text."""
        if self._string:
            end = _STRING_END.match(whole, at)
            if end is None:
                return len(whole)
            self._string, at = False, end.end()
            if not self._object:
                return at
        while True:
            token = _TOKEN.search(whole, at)
            quote = whole.find('"', at)
            if 0 <= quote < (token.start() if token else len(whole)):
                self._string = True  # it continues in the next chunk
                return len(whole)
            if token is None:
                return len(whole)
            at = token.end()
            self._depth += {"{": 1, "}": -1}.get(token[0], 0)
            if self._depth == 0:
                self._object = False
                return at
