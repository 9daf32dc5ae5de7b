"""Split a streamed body into raw frames: server-sent events, NDJSON, AWS event streams, lists of JSON objects.

Chunk borders do not change the result. Frames are not interpreted, and the frames joined are the input.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from zlib import crc32

_SSE_END = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r(?!\n))")
_LINE_END = re.compile(rb"\r\n|\n|\r(?!\n)")
_LINE_ENDS = (b"\r", b"\n")
_SSE_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:data|event|id|retry)?:")
_NDJSON_TYPES = frozenset(
    {
        "application/x-ndjson",
        "application/ndjson",
        "application/jsonl",
        "application/x-jsonlines",
        "application/jsonlines",
    }
)
_JSON_MARK = re.compile(rb'["\[\]{}]')
_JSON_STRING = re.compile(rb'(?:[^"\\]|\\.)*+("?)', re.DOTALL)  # after its opening quote
_JSON_TYPES = ("application/json", "text/json", "")
_LIST_START = re.compile(rb"\s*\[\s*\{")
_PRELUDE = 12  # total length, header length, CRC-32 of both
_SMALLEST_MESSAGE = 16
_LARGEST_MESSAGE = 32 * 1024 * 1024


class Framer(ABC):
    """Bytes in, raw frames out."""

    binary = False

    def __init__(self) -> None:
        self._rest = bytearray()  # changed in place, so that a frame of many chunks is copied once

    @property
    def between(self) -> bool:
        """Whether the next byte begins a frame."""
        return not self._rest

    def feed(self, chunk: bytes) -> list[bytes]:
        """Add a chunk; return the frames that it completes."""
        frames: list[bytes] = []
        self._rest += chunk
        start = 0
        while (end := self._end(start)) > start:
            frames.append(bytes(self._rest[start:end]))
            start = end
        if start:
            del self._rest[:start]
        return frames

    def close(self) -> list[bytes]:
        """End the stream; return the incomplete last frame, if there is one."""
        rest = bytes(self._rest)
        self._rest.clear()
        return [rest] if rest else []

    @abstractmethod
    def _end(self, start: int) -> int:
        """The end in `_rest` of the frame that begins at `start`; 0 if it is not complete."""


class SseFramer(Framer):
    r"""Server-sent events: a frame ends after its blank line. Lines end with \n, \r\n or \r."""

    def __init__(self) -> None:
        super().__init__()
        self._seen = 0  # no frame ends before this offset of `_rest`

    def feed(self, chunk: bytes) -> list[bytes]:
        frames = super().feed(chunk)
        # A line end may be split over chunks: look at the last three bytes again.
        self._seen = max(0, len(self._rest) - 3)
        return frames

    def close(self) -> list[bytes]:
        rest, self._seen = bytes(self._rest), 0
        self._rest.clear()
        frames = []
        # A blank line of "\r" was held back, because "\n" might have followed.
        match = _LINE_END.match(rest) or _SSE_END.search(rest)
        if match and match.end() < len(rest):
            frames.append(rest[: match.end()])
            rest = rest[match.end() :]
        return [*frames, rest] if rest else frames

    def _end(self, start: int) -> int:
        # A frame may be only a blank line.
        blank = self._rest[start : start + 1] in _LINE_ENDS and _LINE_END.match(self._rest, start)
        match = blank or _SSE_END.search(self._rest, max(start, self._seen))
        if match is None:
            return 0
        self._seen = 0
        end = match.end()
        undecided = end == len(self._rest) and self._rest.endswith(b"\r")
        return 0 if undecided else end


class LineFramer(Framer):
    """NDJSON: a frame ends after its newline."""

    def __init__(self) -> None:
        super().__init__()
        self._seen = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        frames = super().feed(chunk)
        self._seen = len(self._rest)
        return frames

    def close(self) -> list[bytes]:
        self._seen = 0
        return super().close()

    def _end(self, start: int) -> int:
        found = self._rest.find(b"\n", max(start, self._seen))
        self._seen = 0
        return found + 1


class AwsFramer(Framer):
    """AWS event stream: each message begins with its length. After a broken prelude the rest is one frame."""

    binary = True

    def __init__(self) -> None:
        super().__init__()
        self._broken = False

    def _end(self, start: int) -> int:
        if self._broken or len(self._rest) - start < _PRELUDE:
            return 0
        total = int.from_bytes(self._rest[start : start + 4], "big")
        check = int.from_bytes(self._rest[start + 8 : start + 12], "big")
        if not _SMALLEST_MESSAGE <= total <= _LARGEST_MESSAGE or crc32(self._rest[start : start + 8]) != check:
            self._broken = True
            return 0
        return start + total if len(self._rest) - start >= total else 0


class ListFramer(Framer):
    """One JSON list, sent element by element: a frame ends after its element; the separator belongs to the next one.

    Only objects and lists end a frame. After the end of the list, the rest is one frame.
    """

    def __init__(self) -> None:
        super().__init__()
        self._seen = 0  # where to read on in `_rest`
        self._depth = 0
        self._quoted = False  # inside a string

    @property
    def closed(self) -> bool:
        """Whether the list has ended."""
        return self._depth < 0

    def feed(self, chunk: bytes) -> list[bytes]:
        before = len(self._rest) + len(chunk)
        frames = super().feed(chunk)
        self._seen -= before - len(self._rest)
        return frames

    def close(self) -> list[bytes]:
        self._seen = 0
        return super().close()

    def _end(self, start: int) -> int:
        while self._depth >= 0 and self._after_string() and (mark := _JSON_MARK.search(self._rest, self._seen)):
            self._seen = mark.end()
            if mark[0] == b'"':
                self._quoted = True
            elif mark[0] in b"[{":
                self._depth += 1
            else:
                self._depth -= 1
                if self._depth == 1:
                    return self._seen
                if self._depth == 0:
                    self._depth = -1
        return 0

    def _after_string(self) -> bool:
        """Skip to the end of the string; False if it has no end yet."""
        if self._quoted:
            rest = _JSON_STRING.match(self._rest, self._seen)
            assert rest is not None  # it also matches the empty string
            self._seen = rest.end()
            self._quoted = not rest[1]
        return not self._quoted


def framer_for(content_type: str | None, first: bytes = b"") -> Framer | None:
    """The framer for a body of this content type that begins with `first`; None if it is not a stream.

    Content types may be missing or wrong, so the first bytes decide if they can; pass a few dozen.
    """
    kind = (content_type or "").partition(";")[0].strip().lower()
    if kind == "application/vnd.amazon.eventstream":
        return AwsFramer()
    if kind in _NDJSON_TYPES:
        return LineFramer()
    if kind == "text/event-stream":
        return None if first.lstrip()[:1] in (b"{", b"[") else SseFramer()
    if kind in ("", "text/plain", "application/octet-stream") and _SSE_START.match(first):
        return SseFramer()
    return None


def list_framer_for(content_type: str | None, first: bytes) -> ListFramer | None:
    """The framer for a JSON list of objects. Only a list that arrives in pieces over time is a stream."""
    kind = (content_type or "").partition(";")[0].strip().lower()
    return ListFramer() if kind in _JSON_TYPES and _LIST_START.match(first) else None
