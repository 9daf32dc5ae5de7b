"""Which bytes of a request were searched for secrets already, in an earlier request.

A loop resends its whole history at every call: searching it again each time, in the thread that forwards, would cost
more than all the rest. Recent request bodies in which nothing was found are kept, and what begins like one of them is
only compared with it.
"""

from __future__ import annotations

from collections.abc import Callable

from wiretape.tape.format.incremental_parser import common_prefix

_MOST_STREAMS = 8
_MOST_BYTES = 4 * 1024 * 1024  # of one body; the rest is searched each time
_SHORTEST = 512  # bytes that are searched as fast as they are compared
_OVERLAP = 8192  # a secret that begins in the common part may end behind it
_ANCHOR = 256  # bytes by which a place in the earlier request is found again
_BETWEEN = b'},{"'

Clean = Callable[[bytes], bytes]


class SearchedBody:
    """A request body that is being received, and the earlier body with the same beginning."""

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
        # A secret may begin in the common part: then search all data.
        return data if clean(rest) is rest else clean(data)

    def _known_end(self, data: bytes, offset: int) -> int:
        """The number of bytes at the end of `data` (at `offset` of the body) that the earlier request has further on.

        The part after the history (tools, settings) is the same, at a later offset.
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
        """The number of leading bytes of `data` that an earlier request has at `offset`."""
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
    """The offset at which the search begins. A secret does not continue in the next JSON object."""
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
        """A request begins. If new secrets are known (`version`), no earlier body counts as searched."""
        self._forget_unless(version)
        return SearchedBody(self, version)

    def add(self, text: bytearray, like: bytearray | None, version: object) -> None:
        """Remember a body. It replaces the body that it continues."""
        self._forget_unless(version)
        self.texts = [kept for kept in self.texts if kept is not like or len(kept) > len(text)][1 - _MOST_STREAMS :]
        self.texts.append(text)

    def _forget_unless(self, version: object) -> None:
        if version is not self._version:
            self._version, self.texts = version, []
