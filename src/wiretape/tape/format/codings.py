"""Decode content-encodings as the bytes arrive: gzip, deflate (with and without its zlib header), br, zstd.

A body cut short keeps what decodes. Bodies with an unknown encoding, or without its library, stay encoded.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any, Protocol

from wiretape.errors import UsageError

GZIP, ZLIB, RAW_DEFLATE = 31, 15, -15
# A body, tape or file that decodes to more than both is not decoded: it was made to fill the memory.
MOST_DECODED = 64 * 1024 * 1024  # bytes
MOST_TIMES = 200  # its encoded size
MAX_SIZE = "WIRETAPE_MAX_SIZE"  # the environment variable that raises MOST_DECODED
_STEP = 1024 * 1024  # decoded bytes at a time
_INPUT = 1024  # bytes at a time for brotli
_SMALL_INPUT = 64  # bytes at a time for a brotli that knows no limit


class Decoder(Protocol):
    """Encoded bytes in, plain bytes out. Raises CodingError for bytes that are not so encoded."""

    def feed(self, data: bytes, limit: int = 0) -> bytes:
        """What `data` decodes to; when `limit` is reached (0: none), the rest of the input stays in `pending`."""
        ...

    @property
    def pending(self) -> bytes: ...


class CodingError(ValueError):
    """The bytes are not what their content-encoding says."""


class TooLarge(CodingError):
    """The bytes decode to more than the limit."""


class _Members:
    """Concatenated streams (gzip members, zstd frames), each with its own decompressor."""

    def __init__(self, make: Callable[[bytes], Any | None], errors: tuple[type[Exception], ...]) -> None:
        self._make, self._errors = make, errors
        self._current: Any | None = None
        self.pending = b""
        self._decoded_any = False

    def feed(self, data: bytes, limit: int = 0) -> bytes:
        self.pending += data
        out: list[bytes] = []
        size = 0
        while self.pending or self._held():
            if self._current is None:
                self._current = self._make(self.pending)
                if self._current is None:
                    break  # too few bytes to tell
            room = limit - size if limit else 0
            try:
                piece = self._step(room)
            except self._errors as error:
                if self._decoded_any:
                    self.pending = b""  # rubbish after a complete stream: keep what decoded
                    break
                raise CodingError(str(error)) from None
            out.append(piece)
            size += len(piece)
            if limit and size >= limit:
                break
            if self._current is not None and not self.pending:
                break
        return b"".join(out)

    def _held(self) -> bool:
        return False

    def _step(self, room: int) -> bytes:
        current = self._current
        assert current is not None
        piece: bytes = current.decompress(self.pending, room)
        self._decoded_any = self._decoded_any or bool(piece)
        if current.eof:
            self._decoded_any = True
            self.pending, self._current = current.unused_data, None
        else:
            self.pending = current.unconsumed_tail
        return piece


class _Zstd(_Members):
    """zstd keeps its unread input inside the decompressor."""

    def _held(self) -> bool:
        return self._current is not None and not self._current.needs_input

    def _step(self, room: int) -> bytes:
        current = self._current
        assert current is not None
        data, self.pending = self.pending, b""
        piece: bytes = current.decompress(data, room or -1)
        self._decoded_any = self._decoded_any or bool(piece)
        if current.eof:
            self._decoded_any = True
            self.pending, self._current = current.unused_data, None
        return piece


class _Brotli:
    def __init__(self, brotli: Any) -> None:
        self._decompressor = brotli.Decompressor()
        self._error = brotli.error
        self._knows_limits = hasattr(self._decompressor, "can_accept_more_data")  # from brotli 1.2 on
        self._decoded_any = False
        self.pending = b""

    def feed(self, data: bytes, limit: int = 0) -> bytes:
        data, self.pending = self.pending + data, b""
        out: list[bytes] = []
        size = at = 0
        while (at < len(data) or self._full()) and not (limit and size >= limit):
            if self._decompressor.is_finished():
                return b"".join(out)
            part = b"" if self._full() else data[at : at + (_INPUT if self._knows_limits else _SMALL_INPUT)]
            try:
                piece = self._process(part, limit - size if limit else 0)
            except self._error as error:
                if self._decoded_any:
                    return b"".join(out)
                raise CodingError(str(error)) from None
            self._decoded_any = self._decoded_any or bool(piece)
            out.append(piece)
            at, size = at + len(part), size + len(piece)
        self.pending = data[at:]
        return b"".join(out)

    def _full(self) -> bool:
        """Whether output has to be taken before more input can be."""
        return self._knows_limits and not self._decompressor.can_accept_more_data()

    def _process(self, data: bytes, room: int) -> bytes:
        limit = {"output_buffer_limit": room} if room and self._knows_limits else {}
        piece: bytes = self._decompressor.process(data, **limit)
        return piece


class _Chain:
    """Two encodings, one applied after the other: what `first` decodes to is the input of `second`."""

    def __init__(self, first: Decoder, second: Decoder) -> None:
        self._first, self._second = first, second

    def feed(self, data: bytes, limit: int = 0) -> bytes:
        out = [self._second.feed(b"", limit)]
        size, more = len(out[0]), True
        while more and not (limit and size >= limit):
            before = self._first.pending
            between = self._first.feed(data, limit)
            data = b""
            more = bool(limit) and (len(between) >= limit or self._first.pending not in (b"", before))
            out.append(self._second.feed(between, limit - size if limit else 0))
            size += len(out[-1])
        return b"".join(out)

    @property
    def pending(self) -> bytes:
        return self._second.pending or self._first.pending


def _deflate(first: bytes) -> Any | None:
    if len(first) < 2:
        return None
    has_header = first[0] & 15 == 8 and (first[0] << 8 | first[1]) % 31 == 0
    return zlib.decompressobj(ZLIB if has_header else RAW_DEFLATE)


def zstd_library() -> Any | None:
    """compression.zstd (Python 3.14) or backports.zstd, if there."""
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        try:
            from backports import zstd  # type: ignore[no-redef, unused-ignore]
        except ImportError:
            return None
    return zstd


def _zstd() -> Decoder | None:
    library = zstd_library()
    return library and _Zstd(lambda _: library.ZstdDecompressor(), (library.ZstdError, EOFError))


def _brotli() -> Decoder | None:
    try:
        import brotli  # type: ignore[import-untyped, import-not-found, unused-ignore]
    except ImportError:
        return None
    return _Brotli(brotli)


_DECODERS: dict[str, Callable[[], Decoder | None]] = {
    "gzip": lambda: _Members(lambda _: zlib.decompressobj(GZIP), (zlib.error,)),
    "x-gzip": lambda: _Members(lambda _: zlib.decompressobj(GZIP), (zlib.error,)),
    "deflate": lambda: _Members(_deflate, (zlib.error,)),
    "zstd": _zstd,
    "br": _brotli,
}


def decoder_for(content_encoding: str) -> Decoder | None:
    """The decoder of these encodings, or None without encodings or with an unknown one."""
    names = [name.strip().lower() for name in content_encoding.split(",")]
    decoders: list[Decoder] = []
    for name in reversed([name for name in names if name not in ("", "identity")]):
        made = _DECODERS.get(name, lambda: None)()
        if made is None:
            return None
        decoders.append(made)
    return reduce(_Chain, decoders) if decoders else None


def steps(decoder: Decoder, data: bytes) -> Iterator[bytes]:
    """What the data decodes to, a part at a time."""
    piece = decoder.feed(data, _STEP)
    yield piece
    while len(piece) >= _STEP or decoder.pending:
        before = decoder.pending
        piece = decoder.feed(b"", _STEP)
        if not piece and decoder.pending == before:
            return
        yield piece


def decode(decoder: Decoder, data: bytes) -> bytes:
    """All that the data decodes to. Raises CodingError; TooLarge, naming the limit."""
    pieces: list[bytes] = []
    size = 0
    for piece in steps(decoder, data):
        pieces.append(piece)
        size += len(piece)
        if swells(size, len(data)):
            raise TooLarge(f"it decodes to {too_large(most_decoded(len(data)))}")
    return b"".join(pieces)


def most_decoded(encoded: int) -> int:
    """How many bytes so many encoded bytes may decode to."""
    try:
        floor = size_in_bytes(os.environ.get(MAX_SIZE, ""))
    except UsageError:
        floor = MOST_DECODED
    return max(floor, MOST_TIMES * encoded)


def size_in_bytes(text: str) -> int:
    """`500m`, `4G`, `4GiB` or a number of bytes. Raises UsageError."""
    found = re.fullmatch(r"(\d{1,15})\s*([kmgt]?)(?:i?b)?", text.strip().lower())
    if found is None:
        raise UsageError(f"{text!r} is not a size; write it like 500m or 4g")
    return int(found[1]) << (10 * " kmgt".index(found[2] or " "))


def allow_size(size: str | None) -> None:
    """Let this process decode up to a size such as `4g`; None: the usual limit. Raises UsageError."""
    if size is not None:
        size_in_bytes(size)
        os.environ[MAX_SIZE] = size


def too_large(limit: int) -> str:
    """The limit that was exceeded, and how to raise it: the end of a message."""
    return f"more than the limit of {limit:,} bytes; if its content is genuine, raise that with {MAX_SIZE}=4g"


def swells(decoded: int, encoded: int) -> bool:
    """Whether a body of such sizes is kept encoded."""
    return decoded > MOST_DECODED and decoded > most_decoded(encoded)


def kept_encoded(content_encoding: str, data: bytes) -> bool:
    """Whether a recorded body is still encoded: nobody could undo that, or it would have been too large."""
    if all(name.strip().lower() in ("", "identity") for name in content_encoding.split(",")):
        return False
    decoder = decoder_for(content_encoding)
    if decoder is None:
        return True
    try:
        decode(decoder, data)
    except TooLarge:
        return True
    except CodingError:
        pass
    return False
