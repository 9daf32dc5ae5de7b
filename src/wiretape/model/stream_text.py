"""Texts of a stream of JSON frames: joins the deltas of each text, and replaces them.

A channel is all strings at one path of the frames' JSON, such as the text deltas of a message. Deltas of several blocks
may be interleaved: their index members say which block each belongs to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import orjson

from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.model.jsonwalk import text_of

INDEX_MEMBERS: Final = frozenset(
    {
        "index",
        "output_index",
        "content_index",
        "summary_index",
        "annotation_index",
        "partial_image_index",
        "contentBlockIndex",
    }
)


def index_values(value: JsonObject) -> Iterator[int]:
    """The numbers in an event that say which block it belongs to. They are part of a channel's key."""
    return (number for key in INDEX_MEMBERS if isinstance(number := value.get(key), int))


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
    """The channels of one stream. Changed frames are written again; every other frame keeps its bytes."""

    def __init__(self, frames: Iterable[bytes]) -> None:
        self._frames = list(frames)
        self._values: dict[int, tuple[bytes, Json, bytes]] = {}  # by frame: the bytes before, the JSON, the bytes after
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
        """Replace the JSON of a frame."""
        before, was, rest = self._values[number]
        if text_of(was) != text_of(value):
            self._values[number] = (before, value, rest)
            self._changed.add(number)

    def replace_text(self, channel: Channel, text: str) -> None:
        """Replace the text of a channel, in as many pieces as it has deltas with text."""
        places = [place for place, delta in enumerate(channel.texts) if delta] or [0]
        for place, piece in zip(places, _pieces(text, len(places)), strict=True):
            self.put(channel, place, piece)

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
        """Replace one delta of a channel."""
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
    """Every string with the key of its channel and its path."""
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
    numbers = () if INDEX_MEMBERS.isdisjoint(value) else tuple(index_values(value))
    return ((item, (*place, *numbers, key), (*path, key)) for key, item in value.items())


def _pieces(text: str, count: int) -> list[str]:
    """The text in `count` pieces of about the same length."""
    size = -(-len(text) // count) or 1
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    return [*pieces, *[""] * (count - len(pieces))]


def _with(value: Json, path: Sequence[str | int], text: str) -> Json:
    """A copy of the JSON value with `text` at a path."""
    holder: list[Json] = [value]
    inside: Json = holder
    for step, following in zip((0, *path), (*path, None), strict=True):
        inside[step] = text if following is None else inside[step].copy()
        inside = inside[step]
    return holder[0]
