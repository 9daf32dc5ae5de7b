"""The positions of a JSON body's parts in its text: members, and elements of top-level lists.

`parse_whole` parses a body and finds out how it was spelled. What a later body may build on is a `Spelled`: the parsed
value, the text, and the places in it. `BodyParser` (in `sharing`) keeps them and looks for what two of them share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from wiretape.model.http import Layout, dump_json
from wiretape.model.jsonvalue import Json
from wiretape.tape.format.json_layout import SEPARATORS, check_values, element_encoder, loads, spellings


@dataclass(slots=True, eq=False, weakref_slot=True)
class Parsed:
    """A parsed body, and what it shares with an earlier one.

    `value[key][:common]` are the same objects as in `base.value[key]`. `base` is kept for one step only: a parsed body
    forgets its own base when another builds on it, so that a long loop does not keep every body alive.
    """

    value: Json
    base: Parsed | None = None
    key: str | None = None
    common: int = 0
    layout: Layout = "compact"
    ascii: bool = False
    exact: bool = True


@dataclass(slots=True)
class Spelled:
    """The positions of a body's parts in its text: the list at `start[key]` has elements that end at `ends[key][i]`."""

    parsed: Parsed
    text: bytes
    comma: int = 1  # how long the separator between elements is
    members: dict[str, tuple[int, int]] = field(default_factory=dict)
    starts: dict[str, int] = field(default_factory=dict)
    ends: dict[str, list[int]] = field(default_factory=dict)
    parts: dict[bytes, Json] | None = None

    def element(self, key: str, index: int) -> bytes:
        ends = self.ends[key]
        start = ends[index - 1] + self.comma if index else self.starts[key]
        return self.text[start : ends[index]]

    def tail(self, key: str) -> bytes:
        """The text from the closing bracket of a list on."""
        return self.text[self.members[key][1] - 1 :]

    def by_bytes(self) -> dict[bytes, Json]:
        """Every list element and every other member, by its bytes."""
        if self.parts is None:
            self.parts = parts = {}
            for key, (start, end) in self.members.items():
                parts[self.text[start:end]] = self.parsed.value[key]
            for key, ends in self.ends.items():
                for index, value in enumerate(self.parsed.value[key][: len(ends)]):
                    parts[self.element(key, index)] = value
        return self.parts


def parse_whole(raw: bytes) -> Spelled:
    value = loads(raw)
    for layout, ascii in spellings(raw):
        if isinstance(value, dict) and layout in SEPARATORS:
            located = locate(value, raw, layout, ascii)
            if located is not None:
                return located
        elif dump_json(value, layout, ascii) == raw:
            return _canonical(Parsed(value, layout=layout, ascii=ascii))
    check_values(raw, value)
    return _canonical(Parsed(value, exact=False))


def _canonical(parsed: Parsed) -> Spelled:
    """Positions in a compact spelling: enough to find parts, though not to compare beginnings."""
    if isinstance(parsed.value, dict):
        text = orjson.dumps(parsed.value)
        located = locate(parsed.value, text, "compact", False)
        if located is not None:
            return Spelled(parsed, text, 1, located.members, located.starts, located.ends)
    return Spelled(parsed, b"")


def locate(value: Json, text: bytes, layout: Layout, ascii: bool) -> Spelled | None:
    """The position of each part, or None if `text` is not this value in this layout."""
    comma, colon = SEPARATORS[layout]
    encode = element_encoder(layout, ascii)
    found = Spelled(Parsed(value, layout=layout, ascii=ascii), text, len(comma))
    pieces: list[bytes] = []
    position = 1
    for name, member in value.items() if isinstance(value, dict) else ():
        opening = (comma if pieces else b"") + encode(name) + colon
        position += len(opening)
        spelled, ends = _spell_member(member, encode, comma, position + 1)
        if ends is not None:
            found.starts[name], found.ends[name] = position + 1, ends
        found.members[name] = (position, position + len(spelled))
        position += len(spelled)
        pieces += (opening, spelled)
    return found if b"{%b}" % b"".join(pieces) == text else None


def _spell_member(
    member: Any, encode: Callable[[Json], bytes], comma: bytes, start: int
) -> tuple[bytes, list[int] | None]:
    if not isinstance(member, list):
        return encode(member), None
    spelled = [encode(element) for element in member]
    return b"[%b]" % comma.join(spelled), ends_after([], start, spelled, len(comma))


def shifted(
    base: Spelled, key: str, shift: int
) -> tuple[dict[str, tuple[int, int]], dict[str, int], dict[str, list[int]]]:
    """The base's positions, those behind the list `key` moved."""
    here = base.members[key][0]
    members = {
        name: (start, end) if start < here else (start, end + shift) if name == key else (start + shift, end + shift)
        for name, (start, end) in base.members.items()
    }
    starts = {name: at if at <= base.starts[key] else at + shift for name, at in base.starts.items()}
    ends = {
        name: [end + shift for end in all_ends] if base.starts[name] > base.starts[key] else all_ends
        for name, all_ends in base.ends.items()
    }
    return members, starts, ends


def ends_after(kept: list[int], start: int, spelled: list[bytes], comma: int) -> list[int]:
    ends = list(kept)
    position = ends[-1] + comma if ends else start
    for text in spelled:
        position += len(text)
        ends.append(position)
        position += comma
    return ends
