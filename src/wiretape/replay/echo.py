"""Ids that the live program made anew, and that come back: an agent's UUID in a tool result, a temporary directory.

They are learnt when a request is matched although it differs: what stands at the same place of both is the same thing
under two names. Live requests are then mapped back before they are compared, recorded answers mapped forward before
they are sent: one to one, and whole words only.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from operator import is_

import orjson

from wiretape.model.http import Body, Exchange, JsonBody, StreamBody, TextBody
from wiretape.model.jsonvalue import Json
from wiretape.replay.canonical import strings
from wiretape.replay.compare import differences
from wiretape.replay.loosen import loose
from wiretape.replay.mask import ID_LIKE
from wiretape.replay.values import Difference

_SHORTEST = 8  # no id-like word is shorter


class Echoes:
    """Two names for one thing: the recorded one and the live one."""

    def __init__(self) -> None:
        self._recorded: dict[str, str] = {}  # live -> recorded
        self._live: dict[str, str] = {}  # recorded -> live
        self._memo: dict[int, tuple[Json, Json]] = {}  # list elements, mapped back before
        self._fresh: list[Json] = []  # those that the last body added

    def learn(self, found: Iterable[Difference]) -> None:
        for difference in found:
            # JSON inside strings is compared by its members: they may come in another order.
            for leaf in differences(loose(difference.recorded), loose(difference.live)):
                if isinstance(leaf.recorded, str) and isinstance(leaf.live, str):
                    self._learn(leaf.recorded, leaf.live)

    def _learn(self, recorded: str, live: str) -> None:
        start, end = apart(recorded, live)
        one = list(ID_LIKE.finditer(recorded, start, len(recorded) - end))
        other = list(ID_LIKE.finditer(live, start, len(live) - end))
        if [match.lastgroup for match in one] != [match.lastgroup for match in other]:
            return
        for was, now in zip(one, other, strict=True):
            if was[0] not in self._live and now[0] not in self._recorded:
                self._recorded[now[0]], self._live[was[0]] = was[0], now[0]
                # What is made anew stands nowhere but in what this request added.
                for element in self._fresh:
                    if any(now[0] in text for text in strings(element)):
                        self._memo.pop(id(element), None)

    # -- live to recorded --------------------------------------------------------------------------------------------

    def back_text(self, text: str) -> str:
        return _named(text, self._recorded) if self._recorded else text

    def back(self, value: Json) -> Json:
        """A live body under the recorded names. Elements of its lists that were mapped before cost a look-up."""
        self._fresh = []
        if not self._recorded:
            return value
        if not isinstance(value, dict):
            return _renamed(value, self._recorded)
        return {key: self._back_member(member) for key, member in value.items()}

    def _back_member(self, member: Json) -> Json:
        if not isinstance(member, list):
            return _renamed(member, self._recorded)
        known = self._memo
        made = [found[1] if (found := known.get(id(item))) else self._back_element(item) for item in member]
        return member if all(map(is_, made, member)) else made

    def _back_element(self, element: Json) -> Json:
        if not isinstance(element, dict):  # small values share their identity with others
            return _renamed(element, self._recorded)
        self._memo[id(element)] = found = (element, _renamed(element, self._recorded))
        self._fresh.append(element)
        return found[1]

    def back_exchange(self, exchange: Exchange) -> Exchange:
        """A live exchange under the recorded names, for a tape on which it stands beside recorded ones."""
        names = self._recorded
        if not names:
            return exchange
        request, response = exchange.request, exchange.response
        request = replace(request, url=_named(request.url, names), body=_renamed_body(request.body, names))
        if response is not None:
            response = replace(response, body=_renamed_body(response.body, names))
        messages = tuple(replace(one, body=_renamed_body(one.body, names) or one.body) for one in exchange.messages)
        return replace(exchange, request=request, response=response, messages=messages)

    # -- recorded to live --------------------------------------------------------------------------------------------

    def forward(self, exchange: Exchange) -> Exchange:
        """A recorded answer under the live names; the same object where it mentions none."""
        response = exchange.response
        if not self._live or response is None:
            return exchange
        body = _renamed_body(response.body, self._live)
        return exchange if body is response.body else replace(exchange, response=replace(response, body=body))


def _renamed_body(body: Body | None, names: dict[str, str]) -> Body | None:
    match body:
        case JsonBody(value=value):
            made = _renamed(value, names)
            return body if made is value else replace(body, value=made)
        case TextBody(text=text):
            said = _named(text, names)
            return body if said is text else TextBody(said)
        case StreamBody(binary=False, frames=frames):
            renamed = _Stream(list(frames), names).renamed()
            return body if renamed is None else replace(body, frames=renamed)
    return body


def apart(one: str, other: str) -> tuple[int, int]:
    """How many characters two texts have in common at their start and end, whole words: what differs lies between."""
    most = min(len(one), len(other))
    start = _common(lambda length: one[:length] == other[:length], most)
    end = _common(lambda length: one[len(one) - length :] == other[len(other) - length :], most - start)
    while start and not one[start - 1].isspace():
        start -= 1
    while end and not one[len(one) - end].isspace():
        end -= 1
    return start, end


def _common(alike: Callable[[int], bool], most: int) -> int:
    """The greatest length for which two ends are alike: by halving, so that the comparing is done by memcmp."""
    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if alike(middle) else (low, middle)
    return low


def _named(text: str, names: dict[str, str]) -> str:
    """The text with each word that has another name under that name; the same object if there is none."""
    if len(text) < _SHORTEST or not any(match[0] in names for match in ID_LIKE.finditer(text)):
        return text
    return ID_LIKE.sub(lambda match: names.get(match[0], match[0]), text)


def _renamed(value: Json, names: dict[str, str]) -> Json:
    """The JSON value with every string renamed; the very same object where nothing has another name."""
    match value:
        case str():
            return _named(value, names)
        case list():
            made = [_renamed(item, names) for item in value]
            return made if any(new is not old for new, old in zip(made, value, strict=True)) else value
        case dict():
            members = {key: _renamed(item, names) for key, item in value.items()}
            return members if any(members[key] is not item for key, item in value.items()) else value
    return value


@dataclass(slots=True)
class _Channel:
    """The strings at one place of the frames' JSON, such as a message's text deltas: together they are one text."""

    frames: list[int] = field(default_factory=list)
    paths: list[tuple[str | int, ...]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


class _Stream:
    """One recorded stream being renamed: words may be split over its frames."""

    def __init__(self, frames: list[bytes], names: dict[str, str]) -> None:
        self._frames = frames
        self._names = names
        self._values: dict[int, tuple[bytes, Json, bytes]] = {}  # frame -> what stands before its JSON, that, the rest
        self._channels: dict[tuple[object, ...], _Channel] = {}
        self._changed: set[int] = set()

    def renamed(self) -> list[bytes] | None:
        """The frames under the live names, or None if no word has one."""
        for number, frame in enumerate(self._frames):
            self._read(number, frame)
        for channel in self._channels.values():
            self._rename(channel)
        if not self._changed:
            return None
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
        self._walk(number, value, (kind,), ())

    def _walk(self, number: int, value: Json, place: tuple[object, ...], path: tuple[str | int, ...]) -> None:
        match value:
            case str():
                channel = self._channels.setdefault(place, _Channel())
                channel.frames.append(number)
                channel.paths.append(path)
                channel.texts.append(value)
            case list():
                for index, item in enumerate(value):
                    self._walk(number, item, (*place, index), (*path, index))
            case dict():
                # Deltas of several things may be interleaved: their numbers tell them apart.
                numbers = [(key, item) for key, item in value.items() if isinstance(item, int) and "index" in key]
                for key, item in value.items():
                    self._walk(number, item, (*place, *numbers, key), (*path, key))

    def _rename(self, channel: _Channel) -> None:
        whole = "".join(channel.texts)
        alone = [_named(text, self._names) for text in channel.texts]
        if _named(whole, self._names) is not whole:
            # An id that each frame repeats is no text that is split over them.
            alone = alone if len(set(channel.texts)) == 1 else _spread(channel.texts, self._names)
        for number, path, was, now in zip(channel.frames, channel.paths, channel.texts, alone, strict=True):
            if now != was:
                self._put(number, path, now)

    def _put(self, number: int, path: Sequence[str | int], text: str) -> None:
        before, value, rest = self._values[number]
        self._values[number] = (before, _with(value, path, text), rest)
        self._changed.add(number)

    def _written(self, number: int) -> bytes:
        before, value, rest = self._values[number]
        return before + orjson.dumps(value) + rest


def _spread(texts: list[str], names: dict[str, str]) -> list[str]:
    """The texts, renamed as one: a new name stands where the old one began, and goes on where that went on."""
    whole = "".join(texts)
    ends = list(accumulate(map(len, texts)))
    pieces: list[list[str]] = [[] for _ in texts]

    def give(start: int, end: int) -> None:
        number = bisect_right(ends, start)
        while start < end:
            stop = min(end, ends[number])
            pieces[number].append(whole[start:stop])
            start, number = stop, number + 1

    at = 0
    for match in ID_LIKE.finditer(whole):
        name = names.get(match[0])
        if name is not None:
            give(at, match.start())
            _give_name(name, match.start(), match.end(), ends, pieces)
            at = match.end()
    give(at, len(whole))
    return ["".join(parts) for parts in pieces]


def _give_name(name: str, start: int, end: int, ends: list[int], pieces: list[list[str]]) -> None:
    """Cut the new name as the old one was cut; the last piece takes what is left of it."""
    number = bisect_right(ends, start)
    while True:
        stop = min(end, ends[number])
        if stop >= end:
            pieces[number].append(name)
            return
        pieces[number].append(name[: stop - start])
        name, start, number = name[stop - start :], stop, number + 1


def _with(value: Json, path: Sequence[str | int], text: str) -> Json:
    """The JSON value with another string at a path."""
    if not path:
        return text
    made = list(value) if isinstance(value, list) else dict(value)
    made[path[0]] = _with(value[path[0]], path[1:], text)  # type: ignore[index]
    return made
