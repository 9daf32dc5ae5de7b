"""The texts of a stream whose frames are JSON: what is spread over deltas is one text, and can be given anew.

A channel is the strings at one place of the frames' JSON, such as a message's text deltas. Deltas of several things
may be interleaved: their index members tell them apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import orjson

from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.model.jsonwalk import text_of


@dataclass(slots=True, eq=False)
class Channel:
    """`frames[i]` holds `texts[i]` at `paths[i]`. `kind`: the type of the events."""

    kind: str = ""
    frames: list[int] = field(default_factory=list)
    paths: list[tuple[str | int, ...]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def text(self) -> str:
        return "".join(self.texts)


class Channels:
    """One stream, taken apart; what was changed is written anew, every other frame keeps its bytes."""

    def __init__(self, frames: Iterable[bytes]) -> None:
        self._frames = list(frames)
        self._values: dict[int, tuple[bytes, Json, bytes]] = {}  # frame -> what stands before its JSON, that, the rest
        self._channels: dict[tuple[object, ...], Channel] = {}
        self._changed: set[int] = set()
        for number, frame in enumerate(self._frames):
            self._read(number, frame)

    def values(self) -> Iterator[tuple[int, Json]]:
        """Each frame's JSON."""
        return ((number, value) for number, (_, value, _) in self._values.items())

    def all(self) -> Iterable[Channel]:
        return self._channels.values()

    def put_value(self, number: int, value: Json) -> None:
        before, was, rest = self._values[number]
        if text_of(was) != text_of(value):
            self._values[number] = (before, value, rest)
            self._changed.add(number)

    def say(self, channel: Channel, text: str) -> None:
        """Let a channel's deltas say another text, cut into as many pieces."""
        spoken = [place for place, was in enumerate(channel.texts) if was] or [0]
        pieces = iter(_pieces(text, len(spoken)))
        for place in spoken:
            self.put(channel, place, next(pieces))

    @property
    def changed(self) -> bool:
        return bool(self._changed)

    def frames(self) -> list[bytes]:
        return [
            self._written(number) if number in self._changed else frame for number, frame in enumerate(self._frames)
        ]

    def _read(self, number: int, frame: bytes) -> None:
        at = frame.find(b"{")
        end = frame.rfind(b"}") + 1
        if at < 0 or frame.count(b"\ndata:", at) > 0:
            return
        try:
            value = orjson.loads(frame[at:end])
        except orjson.JSONDecodeError:
            return
        self._values[number] = (frame[:at], value, frame[end:])
        kind = value.get("type") if isinstance(value, dict) else None
        for place, path, text in _texts(value, (kind,)):
            channel = self._channels.setdefault(place, Channel(str(kind)))
            channel.frames.append(number)
            channel.paths.append(path)
            channel.texts.append(text)

    def put(self, channel: Channel, place: int, text: str) -> None:
        """Another text for one delta of a channel."""
        number = channel.frames[place]
        before, value, rest = self._values[number]
        self._values[number] = (before, _with(value, channel.paths[place], text), rest)
        self._changed.add(number)

    def _written(self, number: int) -> bytes:
        before, value, rest = self._values[number]
        return before + text_of(value).encode() + rest


_Place: TypeAlias = tuple[object, ...]
_Path: TypeAlias = tuple[str | int, ...]


def _texts(value: Json, place: _Place) -> Iterator[tuple[_Place, _Path, str]]:
    """Every string, with the channel that it belongs to and its path."""
    left: list[Iterator[tuple[Json, _Place, _Path]]] = [iter(((value, place, ()),))]
    while left:
        for item, where, path in left[-1]:
            if isinstance(item, str):
                yield where, path, item
            elif isinstance(item, dict | list):
                left.append(_parts(item, where, path))
                break
        else:
            left.pop()


def _parts(value: JsonObject | list[Json], place: _Place, path: _Path) -> Iterator[tuple[Json, _Place, _Path]]:
    if isinstance(value, list):
        return ((item, (*place, index), (*path, index)) for index, item in enumerate(value))
    numbers = [(key, item) for key, item in value.items() if isinstance(item, int) and "index" in key]
    return ((item, (*place, *numbers, key), (*path, key)) for key, item in value.items())


def _pieces(text: str, count: int) -> list[str]:
    """The text in so many pieces of about one length."""
    size = -(-len(text) // count) or 1
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    return [*pieces, *[""] * (count - len(pieces))]


def _with(value: Json, path: Sequence[str | int], text: str) -> Json:
    """The JSON value with another string at a path."""
    holder: list[Json] = [value]
    inside: Json = holder
    for step, following in zip((0, *path), (*path, None), strict=True):
        inside[step] = text if following is None else inside[step].copy()
        inside = inside[step]
    return holder[0]
