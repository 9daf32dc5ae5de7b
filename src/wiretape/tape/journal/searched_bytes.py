"""Which bytes of a request were searched for secrets already, in an earlier request.

A loop resends its whole history at every call: searching it again each time, in the thread that forwards, would cost
more than all the rest. Recent request bodies in which nothing was found are kept, and what begins like one of them is
only compared with it.
"""

from __future__ import annotations

from collections.abc import Callable

from wiretape.tape.format.sharing import common_prefix

_MOST_STREAMS = 8
_MOST_BYTES = 4 * 1024 * 1024  # of one body; what is beyond is searched each time
_SHORTEST = 512  # bytes that are searched as fast as they are compared
_OVERLAP = 8192  # a secret that begins in the common part may end behind it
_ANCHOR = 256  # bytes by which a place in the earlier request is found again
_BETWEEN = b'},{"'

Clean = Callable[[bytes], bytes]


class SearchedBody:
    """One request body on its way, and the earlier one that it begins like."""

    __slots__ = ("_like", "_repeats", "_text", "version")

    def __init__(self, repeats: RecentBodies, version: object) -> None:
        self._repeats = repeats
        self._text: bytearray | None = bytearray()
        self._like: bytearray | None = None
        self.version = version

    def clean(self, data: bytes, clean: Clean) -> bytes:
        """`clean(data)`, without searching what an earlier request had at the same place."""
        text = self._text
        if text is None:
            return clean(data)
        known = self._known(data, len(text))
        found = data if known == len(data) else self._search(data, known, len(text), clean)
        text += data
        if found is not data or len(text) > _MOST_BYTES:
            self._text = None  # nothing to compare a later request with
        return found

    def _search(self, data: bytes, known: int, offset: int, clean: Clean) -> bytes:
        """`clean(data)`, searching only what the earlier request has not: its beginning and its end are known."""
        start = _boundary_before(data, known)
        end = _boundary_after(data, len(data) - self._known_end(data[known:], offset + known))
        if start == 0 and end == len(data):
            return clean(data)
        rest = data[start:end]
        # What was found may have begun in the common part: then search all of it.
        return data if clean(rest) is rest else clean(data)

    def _known_end(self, data: bytes, offset: int) -> int:
        """How many bytes at the end of `data` (at `offset` of the body) stand in the earlier request, further on.

        What follows the history (tools, settings) comes again, moved by what is new.
        """
        anchor = data[-_ANCHOR:]
        found = -1
        if self._like is not None and len(anchor) == _ANCHOR:
            found = self._like.rfind(anchor, offset, offset + len(data))
        if self._like is None or found < 0:
            return 0
        end = found + _ANCHOR
        return common_suffix(data, bytes(memoryview(self._like)[max(offset, end - len(data)) : end]))

    def _known(self, data: bytes, offset: int) -> int:
        """How many leading bytes of `data` stand at `offset` in an earlier request."""
        if len(data) < _SHORTEST:
            return 0
        candidates = [self._like] if self._like is not None else self._repeats.texts
        best = 0
        for text in candidates:
            there = bytes(memoryview(text)[offset : offset + len(data)])
            common = common_prefix(data, there)
            if common > best:
                best, self._like = common, text
        return best

    def done(self) -> None:
        """The body is whole: later ones may begin like it."""
        if self._text:
            self._repeats.add(self._text, self._like, self.version)
        self._text = None


def _boundary_before(data: bytes, known: int) -> int:
    """Where to begin searching: no secret goes on from one JSON object to the next."""
    start = max(0, known - _OVERLAP)
    between = data.rfind(_BETWEEN, start, known)
    return between if between >= 0 else start


def _boundary_after(data: bytes, end: int) -> int:
    between = data.find(_BETWEEN, end, end + _OVERLAP)
    return between + len(_BETWEEN) if between >= 0 else min(len(data), end + _OVERLAP)


def common_suffix(a: bytes, b: bytes) -> int:
    """How many bytes at the end are equal."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[len(a) - middle : len(a) - low] == b[len(b) - middle : len(b) - low]:
            low = middle
        else:
            high = middle - 1
    return low


class RecentBodies:
    """The recent request bodies in which no secret was found."""

    def __init__(self) -> None:
        self.texts: list[bytearray] = []
        self._version: object = None

    def begin(self, version: object) -> SearchedBody:
        """A request begins. When what is searched for has changed (`version`), nothing counts as searched."""
        self._forget_unless(version)
        return SearchedBody(self, version)

    def add(self, text: bytearray, like: bytearray | None, version: object) -> None:
        """Remember a body; it takes the place of the one that it continues."""
        self._forget_unless(version)
        self.texts = [kept for kept in self.texts if kept is not like or len(kept) > len(text)][1 - _MOST_STREAMS :]
        self.texts.append(text)

    def _forget_unless(self, version: object) -> None:
        if version is not self._version:
            self._version, self.texts = version, []
