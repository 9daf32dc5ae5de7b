"""The file of a tape: read whole, appended to document by document, plain or compressed (`.zst`), locked by its writer.

Documents are parted by one blank line. A write that fails leaves the file as it was.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from wiretape.errors import TapeError, TapeUnwritable
from wiretape.tape.atomic import (
    SHARED,
    ReplacementFile,
    check_in_place,
    check_replaceable,
    is_in_place,
    lock,
    sync,
    write_all,
)
from wiretape.tape.damage import Damage, refuse
from wiretape.tape.format.codings import most_decoded, too_large, zstd_library

_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_CHUNK = 1024 * 1024  # bytes of one read
_STEP = 1024 * 1024  # decompressed bytes at a time
_ZSTD_LEVEL = 9
_ZSTD_LAST_BLOCK = b"\x01\x00\x00"  # an empty last block: ends a frame that was cut at a block


def is_compressed(path: Path) -> bool:
    return path.suffix == ".zst"


def journal_path(path: Path) -> Path:
    """The path of the side file that holds open exchanges."""
    return path.with_name(path.name + ".journal")


def free_name(path: Path, first: int = 1) -> Path:
    """Return the first name that neither a tape nor a journal has: NAME.tape, NAME-2.tape, NAME-3.tape, …

    `first`: the number to begin with.
    """
    name, dot, ending = path.name.partition(".tape")
    names = (f"{name}-{number}{dot}{ending}" if number > 1 else path.name for number in itertools.count(first))
    return next(free for free in map(path.with_name, names) if not (free.exists() or journal_path(free).exists()))


def free_derived_name(tape: Path, word: str) -> Path:
    """Return a free name next to a tape for one that is made of it: NAME-WORD.tape, NAME-WORD-2.tape, …"""
    name = tape.name.removesuffix(".zst").removesuffix(".tape")
    return free_name(tape.with_name(f"{name}-{word}.tape"))


def read_text(path: Path) -> bytes:
    """The text of a tape; of a truncated compressed file, the part that decodes. Raises TapeError or TapeDamaged."""
    text, damage = readable_text(path)
    refuse(damage)
    return text


def readable_text(path: Path) -> tuple[bytes, tuple[Damage, ...]]:
    """The readable text of a tape, and the damage after it. Raises TapeError."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise TapeError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise TapeError(f"{path}: is a directory, not a tape; wiretape ls {path} lists the tapes in it") from None
    except OSError as error:
        raise TapeError(f"{path}: cannot be read: {error.strerror or error}") from None
    return _decompressed(data, path) if is_compressed(path) else (data, ())


def _zstd(path: Path) -> Any:
    library = zstd_library()
    if library is None:
        raise TapeError(f"{path}: is compressed, and the zstd library is missing: pip install 'wiretape[zstd]'")
    return library


def _decompressed(data: bytes, path: Path) -> tuple[bytes, tuple[Damage, ...]]:
    library = _zstd(path)
    pieces: list[bytes] = []
    size, limit = 0, most_decoded(len(data))
    while data:
        decompressor = library.ZstdDecompressor()
        while not decompressor.eof and (data or not decompressor.needs_input):
            try:
                pieces.append(decompressor.decompress(data, _STEP))
            except library.ZstdError as error:
                if not pieces:
                    raise TapeError(f"{path}: cannot be decompressed: {error}") from None
                reason = f"cannot be decompressed behind byte {size:,} of its text: {error}"
                return b"".join(pieces), (Damage(path, reason),)
            data = b""
            size += len(pieces[-1])
            if size > limit:
                raise TapeError(f"{path}: is not read: it decompresses to {too_large(limit)}")
        data = decompressor.unused_data if decompressor.eof else b""
    return b"".join(pieces), ()


def stored(path: Path, text: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the bytes that the file of a tape has for a text: the text itself, or one compressed frame."""
    if not is_compressed(path):
        yield from text
        return
    compressor = _zstd(path).ZstdCompressor(level=_ZSTD_LEVEL)
    for piece in text:
        yield compressor.compress(piece)
    yield compressor.flush(compressor.FLUSH_FRAME)


class TapeFile:
    """A tape that is open for appending."""

    def __init__(self, path: Path) -> None:
        """Open and lock the file, creating it (and its directory) if need be. Nothing is changed yet."""
        self.path = path
        self._library = _zstd(path) if is_compressed(path) else None
        self._is_new = not path.exists()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            check_replaceable(path)  # now: at the end of a recording it would be too late
            self._descriptor = os.open(path, _FLAGS, SHARED)
        except OSError as error:
            raise TapeUnwritable(f"{path}: cannot be written: {error.strerror or error}") from None
        # Its last writer may just have replaced it: then another file has the name.
        if not lock(self._descriptor) or not is_in_place(self._descriptor, path):
            os.close(self._descriptor)
            raise TapeUnwritable(f"{path}: is being written by another wiretape; end that one, or choose another name")
        self._size = os.fstat(self._descriptor).st_size
        self._compressor: Any = None
        self._cut = False  # a compressed frame was cut, by a failed write
        self._lost = False  # another file has its name, or none: found when it was written or closed

    @property
    def is_replaced(self) -> bool:
        """Whether another file has the name that this one was closed under."""
        return self._lost and self.path.exists()

    @property
    def empty(self) -> bool:
        return self._size == 0

    def replace(self, text: Iterable[bytes]) -> None:
        """Make this the whole text of the tape, or raise OSError and leave the file as it was.

        The new file is locked before it has the name of the old one: no other writer comes in between.
        """
        if self.empty:
            self.append(b"".join(text))
            return
        with ReplacementFile(self.path) as aside:
            size = aside.write(stored(self.path, text))
            self.check_in_place()
            self._descriptor = aside.place(over=self._descriptor)
        self._size, self._compressor, self._cut = size, None, False

    def replace_start(self, length: int, start: bytes) -> None:
        """Replace the first `length` bytes of the text with `start`."""
        if self._library is not None:
            self._end_frame()
            self.replace([start, read_text(self.path)[length:]])
        else:
            self.replace(itertools.chain([start], self._from(length)))

    def _from(self, offset: int) -> Iterator[bytes]:
        os.lseek(self._descriptor, offset, os.SEEK_SET)
        while data := os.read(self._descriptor, _CHUNK):
            yield data

    def append(self, text: bytes, before: bytes = b"") -> None:
        """Write and hand over to the system, or raise OSError and leave the file as it was."""
        self.check_in_place()
        parts = [self._compressed(before + text)] if self._library else [before, text]
        try:
            os.lseek(self._descriptor, self._size, os.SEEK_SET)
            for data in parts:
                write_all(self._descriptor, data)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self._size)
            self._cut, self._compressor = self._compressor is not None, None
            raise
        self._size += sum(map(len, parts))
        self._cut = False

    def _compressed(self, text: bytes) -> bytes:
        start = b""
        if self._compressor is None:
            assert self._library is not None
            self._compressor = self._library.ZstdCompressor(level=_ZSTD_LEVEL)
            start = _ZSTD_LAST_BLOCK if self._cut and self._size else b""
        data: bytes = self._compressor.compress(text, self._compressor.FLUSH_BLOCK)
        return start + data

    def _end_frame(self) -> None:
        if self._compressor is None:
            return
        end = self._compressor.flush(self._compressor.FLUSH_FRAME)
        self._compressor = None
        os.lseek(self._descriptor, self._size, os.SEEK_SET)
        write_all(self._descriptor, end)
        self._size += len(end)

    def check_in_place(self) -> None:
        """Raise FileNotFoundError if the file was removed, or another one has its name."""
        self._lost = True
        check_in_place(self._descriptor, self.path)
        self._lost = False

    def sync(self) -> None:
        """Wait until everything is on the disk."""
        sync(self._descriptor)

    def close(self) -> None:
        """End the compressed frame, wait for the disk, and release the lock."""
        if self._descriptor < 0:
            return
        try:
            self._end_frame()
            self.sync()
        finally:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)

    def give_up(self) -> None:
        """Release the lock after a failed start, and remove the file if it is new."""
        if self._is_new and is_in_place(self._descriptor, self.path):
            with contextlib.suppress(OSError):
                self.path.unlink()
        descriptor, self._descriptor = self._descriptor, -1
        os.close(descriptor)
