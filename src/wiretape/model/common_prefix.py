"""Common prefixes of texts, and of lists compared by identity: most of the cost of a long history."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from operator import is_
from typing import Final

_MOST: Final = 64  # pairs of lists that are remembered


def common_prefix(a: Sequence[object], b: Sequence[object]) -> int:
    """The length of the common prefix of two texts or tuples, by bisection: slices compare faster than items."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def common_start(one: Sequence[object], other: Sequence[object]) -> int:
    """The number of leading items that are the same objects."""
    if one is other:
        return len(one)
    same = list(map(is_, one, other))
    return same.index(False) if False in same else len(same)


def common_run(one: Sequence[object], other: Sequence[object], start: int = 0) -> int:
    """The same from `start` on, for objects that equal only themselves: it compares slices."""
    most = min(len(one), len(other)) - start
    if most <= 0 or one[start] is not other[start]:
        return 0
    if one[start : start + most] == other[start : start + most]:
        return most
    low, high = 1, most
    while high - low > 1:
        middle = (low + high) // 2
        if one[start + low : start + middle] == other[start + low : start + middle]:
            low = middle
        else:
            high = middle
    return low


class CommonPrefixes:
    """Remembers the common prefixes of lists of raw JSON, which every tier needs."""

    __slots__ = ("_known", "_recent")

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[Sequence[object], Sequence[object], int]] = {}
        self._recent: deque[tuple[int, int]] = deque()

    def remember(self, one: Sequence[object], other: Sequence[object], common: int) -> None:
        """Remember a prefix that the parser knows, because it made one list from the other."""
        key = (id(one), id(other))
        if key not in self._known:
            self._known[key] = (one, other, common)
            self._recent.append(key)
            if len(self._recent) > _MOST:
                del self._known[self._recent.popleft()]

    def common(self, one: Sequence[object], other: Sequence[object]) -> int:
        if one is other:
            return len(one)
        if not one or not other or one[0] is not other[0]:
            return 0
        known = self._known.get((id(one), id(other)))
        if known is not None and known[0] is one and known[1] is other:
            return known[2]
        found = common_start(one, other)
        self.remember(one, other, found)
        return found
