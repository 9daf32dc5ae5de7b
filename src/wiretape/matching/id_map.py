"""Translate ids that the live program creates anew: an agent's UUID in a tool result, a temporary directory.

Ids are learned when a request matches although it differs: words at the same place of both requests are one id. Live
requests are then translated to recorded ids before they are compared, and recorded answers to live ids before they are
sent: one to one, and whole words only.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import is_
from typing import Final

from wiretape.compare.difference import Difference, differences
from wiretape.compare.normalize import loose
from wiretape.model.common_prefix import CommonPrefixes, common_prefix
from wiretape.model.http import Body, Exchange, JsonBody, StreamBody, TextBody
from wiretape.model.jsonvalue import Json
from wiretape.model.jsonwalk import rebuilt, strings
from wiretape.model.stream_text import Channel, Channels
from wiretape.model.volatile_text import ID_LIKE, TEMPORARY_PLACES

_SHORTEST: Final = 8  # characters of the shortest id
_WORD: Final = re.compile(r"[0-9A-Za-z_-]{8,}")  # an id that is not a path
_RECENT: Final = 8  # translated lists that are remembered for each member of a body


@dataclass(slots=True, eq=False)
class _Mapped:
    """A list with live ids (`member`) and with recorded ids (`made`). The first `valid` elements are up to date."""

    member: list[Json]
    made: list[Json]
    valid: int


class NameMap(dict[str, str]):
    """The ids of one side by those of the other."""

    def __init__(self) -> None:
        super().__init__()
        self._paths = False

    def add(self, name: str, other: str) -> None:
        self[name] = other
        self._paths = self._paths or not _WORD.fullmatch(name)

    def named(self, text: str) -> str:
        """The text with its ids replaced; the same object if it has none."""
        if len(text) < _SHORTEST or not self:
            return text
        if self._paths and any(place in text for place in TEMPORARY_PLACES):
            words = ID_LIKE
            known = any(match[0] in self for match in words.finditer(text))
        else:
            words = _WORD
            known = not self.keys().isdisjoint(words.findall(text))
        return words.sub(lambda match: self.get(match[0], match[0]), text) if known else text


class IdMap:
    """Pairs of recorded and live ids."""

    def __init__(self, prefixes: CommonPrefixes | None = None) -> None:
        self._prefixes = prefixes or CommonPrefixes()
        self._recorded = NameMap()  # live -> recorded
        self._live = NameMap()  # recorded -> live
        self._memo: dict[int, tuple[Json, Json]] = {}  # translated list elements, by identity
        self._fresh: list[tuple[str, int, Json]] = []  # elements that the last body added: member, index, element
        self._lists: dict[str, list[_Mapped]] = {}  # by the body's member, oldest first

    def learn(self, found: Iterable[Difference]) -> None:
        """Learn the ids in the differences of a matched request."""
        for difference in found:
            # JSON inside strings is compared by its members, which may have another order.
            for leaf in differences(loose(difference.recorded), loose(difference.live)):
                if isinstance(leaf.recorded, str) and isinstance(leaf.live, str):
                    self._learn(leaf.recorded, leaf.live)

    def _learn(self, recorded: str, live: str) -> None:
        start, end = common_ends(recorded, live)
        one = list(ID_LIKE.finditer(recorded, start, len(recorded) - end))
        other = list(ID_LIKE.finditer(live, start, len(live) - end))
        if [match.lastgroup for match in one] != [match.lastgroup for match in other]:
            return
        for was, now in zip(one, other, strict=True):
            if was[0] not in self._live and now[0] not in self._recorded:
                self._recorded.add(now[0], was[0])
                self._live.add(was[0], now[0])
                # A new id can only be in the elements that this request added.
                for key, index, element in self._fresh:
                    if any(now[0] in text for text in strings(element)):
                        self._memo.pop(id(element), None)
                        self._lists[key][-1].valid = min(index, self._lists[key][-1].valid)

    # -- live ids to recorded ids

    def back_text(self, text: str) -> str:
        return self._recorded.named(text)

    def back(self, value: Json) -> Json:
        """A live body with recorded ids. The known prefixes of its lists are not translated again."""
        self._fresh = []
        if not self._recorded:
            return value
        if not isinstance(value, dict):
            return _renamed(value, self._recorded)
        return {key: self._back_member(key, member) for key, member in value.items()}

    def _back_member(self, key: str, member: Json) -> Json:
        if not isinstance(member, list):
            return _renamed(member, self._recorded)
        base, common = self._nearest(key, member)
        known = min(common, base.valid) if base is not None else 0
        if base is not None and known == len(member) == len(base.member):
            return base.made
        rest = [self._back_element(key, index, member[index]) for index in range(known, len(member))]
        same = (base is None or not known or base.made is base.member) and all(map(is_, rest, member[known:]))
        before = base.made[:known] if base is not None else []
        mapped = _Mapped(member, member if same else [*before, *rest], len(member))
        if base is not None:
            self._prefixes.remember(base.made, mapped.made, known)
        kept = [one for one in self._lists.get(key, ()) if one is not base or common < len(one.member)]
        self._lists[key] = [*kept[1 - _RECENT :], mapped]
        return mapped.made

    def _nearest(self, key: str, member: list[Json]) -> tuple[_Mapped | None, int]:
        """The earlier list with the longest common prefix, and its length."""
        best: _Mapped | None = None
        longest = 0
        for one in reversed(self._lists.get(key, ())):
            if longest < min(len(one.member), len(member)) and one.member[longest] is member[longest]:
                common = self._prefixes.common(one.member, member)
                if common > longest:
                    best, longest = one, common
        return best, longest

    def _back_element(self, key: str, index: int, element: Json) -> Json:
        if not isinstance(element, dict):  # equal small values may be one object
            return _renamed(element, self._recorded)
        found = self._memo.get(id(element))
        if found is None:
            self._memo[id(element)] = found = (element, _renamed(element, self._recorded))
            self._fresh.append((key, index, element))
        return found[1]

    def back_exchange(self, exchange: Exchange) -> Exchange:
        """A live exchange with recorded ids, for a tape with recorded exchanges."""
        names = self._recorded
        if not names:
            return exchange
        request, response = exchange.request, exchange.response
        request = replace(request, url=names.named(request.url), body=_renamed_body(request.body, names))
        if response is not None:
            response = replace(response, body=_renamed_body(response.body, names))
        messages = tuple(replace(one, body=_renamed_body(one.body, names) or one.body) for one in exchange.messages)
        return replace(exchange, request=request, response=response, messages=messages)

    # -- recorded ids to live ids

    def forward(self, exchange: Exchange) -> Exchange:
        """A recorded answer with live ids; the same object if it has none."""
        response = exchange.response
        if not self._live or response is None:
            return exchange
        body = _renamed_body(response.body, self._live)
        return exchange if body is response.body else replace(exchange, response=replace(response, body=body))


def _renamed_body(body: Body | None, names: NameMap) -> Body | None:
    match body:
        case JsonBody(value=value):
            made = _renamed(value, names)
            return body if made is value else replace(body, value=made)
        case TextBody(text=text):
            said = names.named(text)
            return body if said is text else TextBody(said)
        case StreamBody(binary=False, frames=frames):
            renamed = _renamed_stream(frames, names)
            return body if renamed is None else replace(body, frames=renamed)
    return body


def common_ends(one: str, other: str) -> tuple[int, int]:
    """The lengths of the common start and end of two texts, in whole words."""
    start = common_prefix(one, other)
    end = common_prefix(one[start:][::-1], other[start:][::-1])
    while start and not one[start - 1].isspace():
        start -= 1
    while end and not one[len(one) - end].isspace():
        end -= 1
    return start, end


def _renamed(value: Json, names: NameMap) -> Json:
    """The JSON value with the ids in its strings replaced; the same object if it has none."""
    return rebuilt(value, lambda _, leaf: names.named(leaf) if isinstance(leaf, str) else leaf)


def _renamed_stream(frames: Iterable[bytes], names: NameMap) -> list[bytes] | None:
    """The frames with live ids, or None if they have none. An id may be split over frames."""
    channels = Channels(frames)
    for channel in channels.all():
        for place, (was, now) in enumerate(zip(channel.texts, _named_deltas(channel, names), strict=True)):
            if now != was:
                channels.put(channel, place, now)
    return channels.frames() if channels.changed else None


def _named_deltas(channel: Channel, names: NameMap) -> list[str]:
    whole = channel.text
    # An id that each frame repeats is not split over them.
    if names.named(whole) is not whole and len(set(channel.texts)) > 1:
        return _spread(channel.texts, names)
    return [names.named(text) for text in channel.texts]


def _spread(texts: list[str], names: NameMap) -> list[str]:
    """The texts with the ids in their joined text replaced; each id is split where the old one was."""
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
    """Split the new id where the old one was split; the last piece gets the rest."""
    number = bisect_right(ends, start)
    while True:
        stop = min(end, ends[number])
        if stop >= end:
            pieces[number].append(name)
            return
        pieces[number].append(name[: stop - start])
        name, start, number = name[stop - start :], stop, number + 1
