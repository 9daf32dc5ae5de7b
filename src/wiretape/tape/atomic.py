"""Replace a file as a whole: write a temporary file, sync it, rename it, sync the directory.

Every rewrite in wiretape goes through here. A process that is killed, or has no space left, leaves the old file as it
was.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PRIVATE = 0o600  # for what its user alone may read
SHARED = 0o666  # less the umask
_OPEN = os.O_RDWR | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_NOT_SUPPORTED = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)
_NO_LOCKS = (errno.ENOLCK, *_NOT_SUPPORTED)
_CHUNK = 256 * 1024  # bytes of one write
_ABANDONED_S = 60  # an older temporary file without a lock was left by a killed process
_MOUNTED = "the file is mounted by itself and cannot be replaced; mount its folder instead (docker -v FOLDER:FOLDER)"
_FAR = 1 << 40  # the byte that Windows locks: beyond the end of every file, so that readers are free to read


class ReplacementFile:
    """A temporary file in the folder of `path`, open and locked. Complete, it replaces `path`; otherwise it is removed.

    If `path` is a symbolic link, its target is replaced. The new file has the mode and, where the system
    allows it, the owner of the old one; `mode` is for a file that is new, or with `keep_mode=False` for any.
    """

    def __init__(self, path: Path, mode: int = SHARED, *, keep_mode: bool = True) -> None:
        self.target = Path(os.path.realpath(path))
        old = _writable(self.target)
        _remove_abandoned(self.target)
        self.path, self.descriptor = _created(self.target, mode)
        self._placed = False
        try:
            if old is not None and keep_mode:
                _take_after(old, self.path)
            lock(self.descriptor)
        except BaseException:
            self.discard()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._placed:
            self.discard()

    def write(self, pieces: Iterable[bytes]) -> int:
        """Write these pieces. Return how many bytes they have."""
        size = 0
        for data in _gathered(pieces):
            write_all(self.descriptor, data)
            size += len(data)
        return size

    def place(self, over: int | None = None, *, durable: bool = True) -> int:
        """Rename the file into place. Return its descriptor, which the caller closes.

        `over`: the caller's descriptor of the old file; it is closed. `durable=False` does not wait for the disk: a
        power failure may then leave an empty file.
        """
        if durable:
            sync(self.descriptor)
        if os.name == "posix":
            _rename(self.path, self.target)
        else:  # Windows renames only closed files, and only onto closed files
            for descriptor in (self.descriptor, over):
                if descriptor is not None:
                    os.close(descriptor)
            over = None
            _rename(self.path, self.target)
            self.descriptor = os.open(self.target, _OPEN)
            lock(self.descriptor)
        self._placed = True
        if over is not None:
            os.close(over)
        if durable:
            sync_directory(self.target.parent)
        return self.descriptor

    def discard(self) -> None:
        """Close and remove the file: the old one stays."""
        with contextlib.suppress(OSError):
            os.close(self.descriptor)
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)


def rewrite(path: Path, pieces: Iterable[bytes], mode: int = SHARED) -> None:
    """Make these pieces the whole of a file, or raise OSError and leave it as it was. `mode`: of a file that is new."""
    if _is_stream(path):
        with open(path, "wb", buffering=0) as file:
            for data in _gathered(pieces):
                file.write(data)
        return
    with ReplacementFile(path, mode) as aside:
        aside.write(pieces)
        os.close(aside.place())


def put_in_place(fresh: Path, path: Path) -> None:
    """Make a file that is whole and closed the one at `path`, which keeps its mode."""
    target = Path(os.path.realpath(path))
    if (old := _writable(target)) is not None:
        _take_after(old, fresh)
    descriptor = os.open(fresh, _OPEN)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)
    _rename(fresh, target)
    sync_directory(target.parent)


def _rename(fresh: Path, target: Path) -> None:
    try:
        os.replace(fresh, target)
    except OSError as error:
        if error.errno == errno.EBUSY:
            raise OSError(errno.EBUSY, _MOUNTED, str(target)) from None
        raise


def check_replaceable(path: Path) -> None:
    """Raise OSError if a file is a mount point, as `docker run -v FILE:FILE` makes one: it cannot be replaced."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape").splitlines()
    except OSError:  # not Linux
        return
    spelled = os.path.realpath(path)
    for character in "\\ \t\n":
        spelled = spelled.replace(character, f"\\{ord(character):03o}")
    if any(line.split(" ")[4] == spelled for line in mounts):
        raise OSError(errno.EBUSY, _MOUNTED, str(path))


def private(path: str, flags: int) -> int:
    """Opener for `open`: only the user can read a file that it creates."""
    return os.open(path, flags, PRIVATE)


def is_in_place(descriptor: int, path: Path) -> bool:
    """Whether an open file still has this name."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except OSError:
        return False


def check_in_place(descriptor: int, path: Path) -> None:
    """Raise FileNotFoundError if an open file has lost its name to another file, or was removed."""
    if not is_in_place(descriptor, path):
        raise FileNotFoundError(errno.ENOENT, "another program removed or replaced the file", str(path))


def sync(descriptor: int) -> None:
    """Wait until the system has written a file to the disk, where the file system supports that."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NOT_SUPPORTED:
            raise


def sync_directory(directory: Path) -> None:
    """Wait until a rename in this directory is on the disk, where the system supports that."""
    if os.name != "posix":
        return
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def lock(descriptor: int) -> bool:
    """Lock an open file until it is closed; False if another process has locked it.

    On a file system without locks, files are used without them.
    """
    try:
        import fcntl
    except ImportError:
        import msvcrt

        locking: Any = msvcrt  # typeshed knows its members on Windows only
        try:
            os.lseek(descriptor, _FAR, os.SEEK_SET)
            locking.locking(descriptor, locking.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return True
        if not isinstance(error, BlockingIOError | PermissionError):
            raise
        return False
    return True


def write_all(descriptor: int, data: bytes) -> None:
    """os.write may take less than it was given."""
    written = os.write(descriptor, data)
    while written < len(data):
        written += os.write(descriptor, memoryview(data)[written:])


def _created(target: Path, mode: int) -> tuple[Path, int]:
    for number in itertools.count(1):
        path = target.with_name(f".{_stem(target)}.{os.getpid()}.{number}.new")
        with contextlib.suppress(FileExistsError):
            return path, os.open(path, _OPEN | os.O_CREAT | os.O_EXCL, mode)
    raise AssertionError  # the numbers do not end


def _stem(target: Path) -> str:
    return target.name[:50]  # a name has at most 255 bytes, and a character may have four


def _writable(target: Path) -> os.stat_result | None:
    """Return the file's state, or None. Raises PermissionError for a read-only file, which a rename would replace."""
    if not target.exists():
        return None
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))
    return target.stat()


def _take_after(old: os.stat_result, path: Path) -> None:
    if os.name == "posix":
        for owner, group in ((-1, old.st_gid), (old.st_uid, -1)):
            with contextlib.suppress(OSError):
                os.chown(path, owner, group)
    os.chmod(path, stat.S_IMODE(old.st_mode))


def _remove_abandoned(target: Path) -> None:
    """Remove the temporary files that killed processes left for this file."""
    name = re.compile(rf"\.{re.escape(_stem(target))}\.\d+\.\d+\.new")
    try:
        left = [target.with_name(one) for one in os.listdir(target.parent) if name.fullmatch(one)]
    except OSError:  # it may be written to, and not listed
        return
    for path in left:
        with contextlib.suppress(OSError), open(path, "rb+") as file:
            if time.time() - path.stat().st_mtime > _ABANDONED_S and lock(file.fileno()):
                path.unlink()


def _is_stream(path: Path) -> bool:
    """True for a device, a pipe or an open descriptor, which cannot be replaced."""
    if str(path).startswith(("/dev/std", "/dev/fd/", "/proc/")):
        return True
    return path.exists() and not path.is_file() and not path.is_dir()


def _gathered(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in few pieces."""
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= _CHUNK:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)
