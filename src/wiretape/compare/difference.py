"""Differences between JSON values and between requests: a path and both values."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from itertools import chain, zip_longest
from typing import Final
from urllib.parse import parse_qs

from wiretape.compare.address import Address
from wiretape.compare.canonical import same
from wiretape.model.common_prefix import CommonPrefixes, common_start
from wiretape.model.jsonvalue import Json


class Tier(IntEnum):
    """How exactly a live request matches a recorded one, strictest first."""

    EXACT = 0
    NORMALIZED = 1
    MASKED = 2
    POSITION = 3  # only the position in the thread is the same

    @property
    def word(self) -> str:
        return self.name.lower()


class Absent:
    """The value of a side of a difference that has none."""

    def __repr__(self) -> str:
        return "(nothing)"


ABSENT: Final = Absent()


@dataclass(frozen=True, slots=True)
class Difference:
    """A path at which two values differ, and both values; ABSENT if one side has none."""

    where: str
    recorded: Json
    live: Json


_RECENT: Final = 8  # histories whose compared pairs are remembered in order


def differences(recorded: Json, live: Json, where: str = "") -> Iterator[Difference]:
    """The smallest parts that differ, in the order of the recorded value; a part on one side only is not split."""
    pairs = [iter([(recorded, live, where)])]  # one for each level: no recursion, since bodies may be nested deeply
    while pairs:
        for one, other, place in pairs[-1]:
            if isinstance(one, dict) and isinstance(other, dict):
                pairs.append(_members(one, other, place))
                break
            if isinstance(one, list) and isinstance(other, list):
                pairs.append(_elements(one, other, place))
                break
            if not same(one, other):
                yield Difference(place or "body", one, other)
        else:
            pairs.pop()


def _members(recorded: dict[str, Json], live: dict[str, Json], where: str) -> Iterator[tuple[Json, Json, str]]:
    for key, value in recorded.items():
        yield value, live.get(key, ABSENT), member(where, key)
    for key, value in live.items():
        if key not in recorded:
            yield ABSENT, value, member(where, key)


def _elements(recorded: list[Json], live: list[Json], where: str) -> Iterator[tuple[Json, Json, str]]:
    for index, (one, other) in enumerate(zip_longest(recorded, live, fillvalue=ABSENT)):
        if one is not other:
            yield one, other, f"{where}[{index}]"


def differences_of_queries(recorded: str, live: str) -> Iterator[Difference]:
    """The parameters that differ; both queries if only their order or spelling differs."""
    one, other = _parameters(recorded), _parameters(live)
    apart = [
        Difference(f"query {name}", one.get(name, ABSENT), other.get(name, ABSENT))
        for name in {**one, **other}
        if name not in one or name not in other or not same(one[name], other[name])
    ]
    if apart or same(recorded, live):
        yield from apart
    else:
        yield Difference("query", recorded, live)


def differences_of_addresses(recorded: Address, live: Address) -> Iterator[Difference]:
    """Differences of path and query. Hosts do not count: a replay has another one."""
    if recorded.path != live.path:
        yield Difference("path", recorded.path, live.path)
    yield from differences_of_queries(recorded.query, live.query)


def _parameters(query: str) -> dict[str, Json]:
    """Values by name; a list for a repeated name."""
    found = parse_qs(query, keep_blank_values=True)
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


class Differences:
    """Returns each difference once, although it is in the history of every later call."""

    __slots__ = ("_common", "_known", "_recent")

    def __init__(self, beginnings: CommonPrefixes | None = None) -> None:
        self._common = (beginnings or CommonPrefixes()).common
        self._known: dict[tuple[int, int], tuple[Json, Json]] = {}
        self._recent: deque[tuple[list[Json], list[Json]]] = deque(maxlen=_RECENT)

    def between(self, recorded: Json, live: Json) -> Iterator[Difference]:
        if not isinstance(recorded, dict) or not isinstance(live, dict):
            yield from differences(recorded, live)
            return
        for key, value in recorded.items():
            if key in live and isinstance(value, list) and isinstance(live[key], list):
                yield from self._of_lists(value, live[key], key)
            elif key in live:
                yield from differences(value, live[key], key)
        for key in recorded.keys() ^ live.keys():
            yield Difference(key, recorded.get(key, ABSENT), live.get(key, ABSENT))

    def _of_lists(self, recorded: list[Json], live: list[Json], where: str) -> Iterator[Difference]:
        if len(recorded) != len(live):
            yield from differences(recorded, live, where)
            return
        for index in self._uncompared(recorded, live):
            one, other = recorded[index], live[index]
            if one is other or (id(one), id(other)) in self._known:
                continue
            if isinstance(one, dict) and isinstance(other, dict):  # small values share their identity with others
                self._known[id(one), id(other)] = one, other
            yield from differences(one, other, f"{where}[{index}]")

    def of_pair(self, recorded: Json, live: Json, where: str) -> Iterator[Difference]:
        """The differences of two parts at different places, unless they were compared before."""
        if recorded is live or (id(recorded), id(live)) in self._known:
            return
        if isinstance(recorded, dict | list) and isinstance(live, dict | list):
            self._known[id(recorded), id(live)] = recorded, live
        yield from differences(recorded, live, where)

    def _uncompared(self, recorded: list[Json], live: list[Json]) -> Iterable[int]:
        """The pairs that were not compared before, by identity: not the leading ones, or only the first."""
        longest, rejoins = 0, 1
        for before, then in reversed(self._recent):
            if longest < min(len(then), len(live)) and then[longest] is live[longest]:
                longest = max(longest, min(self._common(before, recorded), self._common(then, live)))
            elif not longest and rejoins == 1 and min(len(then), len(live)) > 1 and then[1] is live[1]:
                rejoins += min(common_start(before[1:], recorded[1:]), common_start(then[1:], live[1:]))
        if live and isinstance(live[-1], dict):
            self._recent.append((recorded, live))
        if longest or rejoins == 1:
            return range(longest, len(live))
        return chain(range(1), range(rejoins, len(live)))


def member(where: str, key: str) -> str:
    """The path of a member, as wiretape prints it."""
    if not key.replace("_", "a").replace("-", "a").isalnum():
        return f'{where}["{key}"]'
    return f"{where}.{key}" if where else key
