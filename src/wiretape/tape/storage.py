"""The file of a tape: read whole, appended to document by document, plain or compressed (`.zst`), locked by its writer.

Documents are parted by one blank line. A write that fails leaves the file as it was.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import Any

from wiretape.errors import TapeError, TapeUnwritable
from wiretape.tape.codings import most_decoded, too_large, zstd_library
from wiretape.tape.damage import Damage, refuse

_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_FAR = 1 << 40  # Windows locks bytes: one that no tape reaches, so that readers are not shut out
_STEP = 1024 * 1024  # decompressed bytes at a time
_ZSTD_LAST_BLOCK = b"\x01\x00\x00"  # an empty last block: ends a frame that was cut at a block


def is_compressed(path: Path) -> bool:
    return path.suffix == ".zst"


def journal_path(path: Path) -> Path:
    """The side file that holds what is in flight."""
    return path.with_name(path.name + ".journal")


def read_text(path: Path) -> bytes:
    """The text of a tape. A compressed one that was cut gives what decodes. Raises TapeError, TapeDamaged included."""
    text, damage = readable_text(path)
    refuse(damage)
    return text


def readable_text(path: Path) -> tuple[bytes, tuple[Damage, ...]]:
    """The text of a tape as far as it can be read, and what is damaged behind that. Raises TapeError."""
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


def lock(descriptor: int) -> bool:
    """Take the lock of an open file, or say that somebody else has it. It goes when the file is closed."""
    try:
        import fcntl
    except ImportError:
        import msvcrt

        locking: Any = msvcrt  # typeshed knows its members on Windows only
        with contextlib.suppress(OSError):
            os.lseek(descriptor, _FAR, os.SEEK_SET)
            locking.locking(descriptor, locking.LK_NBLCK, 1)
            return True
        return False
    with contextlib.suppress(BlockingIOError, PermissionError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


class TapeFile:
    """A tape that is open for appending."""

    def __init__(self, path: Path) -> None:
        """Opens and locks the file, creating it (and its directory) if need be. Nothing is changed yet."""
        self.path = path
        self._library = _zstd(path) if is_compressed(path) else None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(path, _FLAGS, 0o666)
        except OSError as error:
            raise TapeUnwritable(f"{path}: cannot be written: {error.strerror or error}") from None
        if not lock(self._descriptor) or not self._in_place():
            os.close(self._descriptor)
            raise TapeUnwritable(f"{path}: is being written by another wiretape; end that one, or choose another name")
        self._size = os.fstat(self._descriptor).st_size
        self._compressor: Any = None
        self._cut = False  # a compressed frame was cut, by a failed write

    def _in_place(self) -> bool:
        """Whether the file that was locked still has this name: its last writer may just have replaced it."""
        try:
            return os.path.samestat(os.fstat(self._descriptor), os.stat(self.path))
        except OSError:
            return False

    @property
    def empty(self) -> bool:
        return self._size == 0

    def replace(self, text: bytes) -> None:
        """Make this the whole text of the tape."""
        os.ftruncate(self._descriptor, 0)
        self._size, self._compressor, self._cut = 0, None, False
        if text:
            self.append(text)

    def truncate(self, size: int) -> None:
        """Keep the first `size` bytes. Not for compressed tapes."""
        os.ftruncate(self._descriptor, size)
        self._size = size

    def append(self, text: bytes, before: bytes = b"") -> None:
        """Write and hand over to the system, or raise OSError and leave the file as it was."""
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
            self._compressor = self._library.ZstdCompressor(level=9)
            start = _ZSTD_LAST_BLOCK if self._cut and self._size else b""
        data: bytes = self._compressor.compress(text, self._compressor.FLUSH_BLOCK)
        return start + data

    def finish(self) -> None:
        """End the compressed frame, and have the system write everything to the disk."""
        if self._compressor is not None:
            end = self._compressor.flush(self._compressor.FLUSH_FRAME)
            self._compressor = None
            os.lseek(self._descriptor, self._size, os.SEEK_SET)
            write_all(self._descriptor, end)
            self._size += len(end)
        with contextlib.suppress(OSError):  # not every file system knows it
            os.fsync(self._descriptor)

    def close(self) -> None:
        """Finish, and let go of the lock."""
        if self._descriptor < 0:
            return
        try:
            self.finish()
        finally:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)


def replace_start(path: Path, length: int, start: bytes) -> None:
    """Put `start` in the place of the first bytes of a file, all or nothing, however large the rest is."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with open(path, "rb") as old, open(fresh, "wb") as new:
            old.seek(length)
            new.write(start)
            shutil.copyfileobj(old, new, 1024 * 1024)
        shutil.copymode(path, fresh)
        os.replace(fresh, path)
    finally:
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)


def write_all(descriptor: int, data: bytes) -> None:
    """os.write may take less than it was given."""
    written = os.write(descriptor, data)
    while written < len(data):
        written += os.write(descriptor, memoryview(data)[written:])
