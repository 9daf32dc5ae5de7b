"""Frames of a stream as a tape shows them: what a frame shares with the one before it is not written again.

`~P,S:middle` is a frame whose first P and last S characters are the frame before's. A stream of tokens then shows
little more than its tokens. Loaded frames stay packed in memory until they are looked at.
"""

from __future__ import annotations

import base64
import binascii
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")
_SLICE = 4 * 1024 * 1024  # characters of base64 that are decoded at a time: whole groups of four
_LEAST_SAVED = 12  # characters in common below which a frame is written whole


def pack(frames: Iterable[str]) -> list[str]:
    """Each frame, or how it differs from the one before."""
    packed: list[str] = []
    before = ""
    for frame in frames:
        packed.append(_packed(frame, before))
        before = frame
    return packed


def _packed(frame: str, before: str) -> str:
    limit = min(len(frame), len(before))
    head = _shared(frame, before, limit)
    tail = _shared_tail(frame, before, limit - head)
    if head + tail < _LEAST_SAVED:
        return f"~0,0:{frame}" if frame.startswith("~") else frame
    return f"~{head},{tail}:{frame[head : len(frame) - tail]}"


def _shared(a: str, b: str, limit: int) -> int:
    """How many leading characters are equal, up to `limit`."""
    if a[:limit] == b[:limit]:
        return limit
    low, high = 0, limit
    while high - low > 1:
        middle = (low + high) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low


def _shared_tail(a: str, b: str, limit: int) -> int:
    la, lb = len(a), len(b)
    if a[la - limit :] == b[lb - limit :]:
        return limit
    low, high = 0, limit
    while high - low > 1:
        middle = (low + high) // 2
        if a[la - middle : la - low] == b[lb - middle : lb - low]:
            low = middle
        else:
            high = middle
    return low


def unpack(packed: Iterable[str]) -> Iterator[str]:
    """The frames. Raises ValueError for a reference beyond the end of the previous frame."""
    before = ""
    for number, shown in enumerate(packed):
        frame = _unpacked(shown, before, number) if shown.startswith("~") else shown
        yield frame
        before = frame


def _unpacked(shown: str, before: str, number: int) -> str:
    counts, colon, middle = shown[1:].partition(":")
    head, comma, tail = counts.partition(",")
    if not (colon and comma and head.isdecimal() and tail.isdecimal()):
        raise ValueError(f"events[{number}]: a frame that begins with ~ must read ~P,S:text")
    first, last = int(head), int(tail)
    if first + last > len(before):
        raise ValueError(f"events[{number}]: takes {first} + {last} characters of a frame that has {len(before)}")
    return before[:first] + middle + before[len(before) - last :]


class Lazy(Sequence[T], Generic[T]):
    """A sequence that is computed at each iteration, and so takes memory only while it is used.

    The last result is kept, so that indexing in a loop is not quadratic.
    """

    __slots__ = ("_length",)
    _last: tuple[Lazy[Any], list[Any]] | None = None

    def __init__(self, length: int) -> None:
        self._length = length

    @abstractmethod
    def _all(self) -> Iterator[T]: ...

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        return self._all()

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        last = Lazy._last
        if last is None or last[0] is not self:
            last = Lazy._last = (self, list(self._all()))
        found: T | Sequence[T] = last[1][index]
        return found

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str | bytes):
            return NotImplemented
        return len(self) == len(other) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


class PackedFrames(Lazy[bytes]):
    """The frames of an `events` body."""

    __slots__ = ("_packed",)

    def __init__(self, packed: Sequence[str]) -> None:
        super().__init__(len(packed))
        self._packed = packed

    def _all(self) -> Iterator[bytes]:
        return (frame.encode() for frame in unpack(self._packed))


class Base64Frames(Lazy[bytes]):
    """The frames of a `frames` body."""

    __slots__ = ("_encoded",)

    def __init__(self, encoded: Sequence[str]) -> None:
        super().__init__(len(encoded))
        self._encoded = encoded

    def _all(self) -> Iterator[bytes]:
        return (from_base64(text, f"frames[{number}]") for number, text in enumerate(self._encoded))


class Times(Lazy[int]):
    """The `ms` line of a stream."""

    __slots__ = ("_line",)

    def __init__(self, line: str) -> None:
        super().__init__(line.count(" ") + 1 if line else 0)
        self._line = line

    def _all(self) -> Iterator[int]:
        return map(int, self._line.split(" ") if self._line else ())


def from_base64(text: str, where: str) -> bytes:
    """Raises ValueError with the place at which the text is not base64."""
    try:
        whole = len(text) <= _SLICE
        return base64.b64decode(text, validate=True) if whole else _from_much_base64(text)
    except binascii.Error as error:
        raise ValueError(f"{where}: no base64 ({error})") from None


def _from_much_base64(text: str) -> bytes:
    """The same a part at a time: much text is not copied whole."""
    made = BytesIO()
    for at in range(0, len(text), _SLICE):
        part = text[at : at + _SLICE]
        if at + _SLICE < len(text) and "=" in part:
            raise binascii.Error("padding before the end")
        made.write(base64.b64decode(part, validate=True))
    return made.getvalue()


def to_base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
