"""Where recorded answers stand by key, and are taken from: same host first, then earliest recorded, each once."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from itertools import islice
from typing import Final

_MOST_EQUAL: Final = 32  # of equal calls that wait: more are not told apart


class AnswerPool:
    """Recorded calls by key. `played` is shared by the shelves of all tiers."""

    __slots__ = ("_by_key", "_played")

    def __init__(self, played: bytearray) -> None:
        self._played = played
        self._by_key: dict[Hashable, dict[str, deque[int]]] = {}

    def put(self, key: Hashable, host: str, number: int) -> None:
        self._by_key.setdefault(key, {}).setdefault(host, deque()).append(number)

    def peek(self, key: Hashable, host: str, strict: bool = False) -> int | None:
        """The recorded call that would answer now. `strict`: of this host only."""
        rows = self._by_key.get(key)
        if rows is None:
            return None
        own = self._first(rows.get(host))
        if own is not None or strict:
            return own
        heads = [head for row in rows.values() if (head := self._first(row)) is not None]
        return min(heads, default=None)

    def has_several(self, key: Hashable) -> bool:
        """Whether more than one recorded call has this key, played or not."""
        rows = self._by_key.get(key, {})
        return len(rows) > 1 or any(len(row) > 1 for row in rows.values())

    def waiting(self, key: Hashable, host: str) -> list[int]:
        """All that could answer as well as what `peek` gave, earliest first: those of the same host, if any are."""
        rows = self._by_key.get(key, {})
        own = self._unplayed(rows.get(host))
        return own or sorted(number for row in rows.values() for number in self._unplayed(row))

    def _unplayed(self, row: deque[int] | None) -> list[int]:
        if row is None or (len(row) == 1 and self._played[row[0]]):
            return []
        return [number for number in islice(row, _MOST_EQUAL) if not self._played[number]]

    def last_played(self, key: Hashable, host: str, strict: bool = False) -> int | None:
        """The last of those that would have answered, all being played."""
        rows = self._by_key.get(key)
        if rows is None:
            return None
        row = rows.get(host)
        if row or strict:
            return row[-1] if row else None
        return max((row[-1] for row in rows.values() if row), default=None)

    def _first(self, row: deque[int] | None) -> int | None:
        # What another tier's shelf gave away is dropped when it comes to the front; the last one stays, for repeats.
        while row:
            if not self._played[row[0]]:
                return row[0]
            if len(row) == 1:
                return None
            row.popleft()
        return None
