from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from wiretape.adapters.update.staged_recording import StagedRecording
from wiretape.errors import TapeUnwritable
from wiretape.tape import atomic
from wiretape.tape.atomic import PRIVATE, ReplacementFile, check_replaceable, lock, private, put_in_place, rewrite
from wiretape.tape.storage import TapeFile

posix = pytest.mark.skipif(os.name != "posix", reason="modes, links and pipes of POSIX")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o027)
    yield
    os.umask(before)


@posix
def test_a_new_file_follows_the_umask_or_is_private(tmp_path: Path, umask: None) -> None:
    rewrite(tmp_path / "shared", [b"a", b"b"])
    rewrite(tmp_path / "private", [b"c"], PRIVATE)
    assert (tmp_path / "shared").read_bytes() == b"ab"
    assert mode(tmp_path / "shared") == 0o640
    assert mode(tmp_path / "private") == 0o600


@posix
@pytest.mark.parametrize("kept", [0o644, 0o600, 0o664, 0o755])
def test_a_rewrite_keeps_the_mode(tmp_path: Path, umask: None, kept: int) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")
    path.chmod(kept)
    rewrite(path, [b"new"], PRIVATE)
    assert (path.read_bytes(), mode(path)) == (b"new", kept)
    fresh = tmp_path / "fresh"
    fresh.write_bytes(b"newer")
    put_in_place(fresh, path)
    assert (path.read_bytes(), mode(path)) == (b"newer", kept)
    assert os.listdir(tmp_path) == ["f"]


@posix
def test_a_symbolic_link_stays(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("deep/real")
    rewrite(tmp_path / "link", [b"new"])
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "deep" / "real").read_bytes() == b"new"
    (tmp_path / "fresh").write_bytes(b"newer")
    put_in_place(tmp_path / "fresh", tmp_path / "link")
    assert (tmp_path / "deep" / "real").read_bytes() == b"newer"


@pytest.mark.parametrize("operation", ["open", "write", "fsync", "replace"])
def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, operation, full)
    with pytest.raises(OSError, match="No space left"):
        rewrite(path, [b"new"])
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["f"]


def test_pieces_that_fail_leave_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")

    def pieces() -> Iterator[bytes]:
        yield b"x" * 10**6
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rewrite(path, pieces())
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["f"]


def test_a_file_system_without_fsync_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: int) -> None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(os, "fsync", refused)
    rewrite(tmp_path / "f", [b"new"])
    assert (tmp_path / "f").read_bytes() == b"new"


@posix
def test_a_pipe_and_a_device_are_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    rewrite(pipe, [b"a", b"b"])
    reader.join(10)
    assert read == [b"ab"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    rewrite(Path(os.devnull), [b"x"])
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


@posix
def test_standard_output_is_not_renamed_onto(tmp_path: Path) -> None:
    """`--report /dev/stdout > file`: the file that the shell has opened gets it."""
    out = tmp_path / "out"
    descriptor = os.open(out, os.O_RDWR | os.O_CREAT)
    rewrite(Path(f"/dev/fd/{descriptor}"), [b"a"])
    assert os.path.samestat(os.fstat(descriptor), out.stat())
    assert out.read_bytes() == b"a"
    os.close(descriptor)


@pytest.mark.parametrize("path", ["/dev/shm/a.tape", "dev/fd/1", "/tmp/proc/a.tape"])
def test_a_file_system_in_memory_has_files_like_any_other(path: str) -> None:
    assert not atomic._is_stream(Path(path))


@posix
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write anywhere")
def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")
    path.chmod(0o444)
    with pytest.raises(PermissionError):
        rewrite(path, [b"new"])
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("name", ["n" * 255, "录" * 85])
def test_the_longest_names_can_be_rewritten(tmp_path: Path, name: str) -> None:
    rewrite(tmp_path / name, [b"old"])
    rewrite(tmp_path / name, [b"new"])
    assert (tmp_path / name).read_bytes() == b"new"


def test_what_a_killed_process_left_is_removed_later(tmp_path: Path) -> None:
    """Not what another process is writing, and not another file's."""
    path = tmp_path / "f"
    left, fresh, busy, other = (
        tmp_path / name for name in (".f.1.1.new", ".f.2.1.new", ".f.3.1.new", ".f.tape.4.1.new")
    )
    for one in (left, fresh, busy, other):
        one.write_bytes(b"x")
    for one in (left, busy, other):
        os.utime(one, (1, 1))
    with open(busy, "rb+") as file:
        assert lock(file.fileno())
        rewrite(path, [b"new"])
    assert not left.exists()
    assert fresh.exists()
    assert busy.exists()
    assert other.exists()


def test_a_name_that_is_taken_is_passed_over(tmp_path: Path) -> None:
    """In containers every process may have the same number."""
    (tmp_path / f".f.{os.getpid()}.1.new").write_bytes(b"another's")
    rewrite(tmp_path / "f", [b"new"])
    assert (tmp_path / "f").read_bytes() == b"new"
    assert (tmp_path / f".f.{os.getpid()}.1.new").read_bytes() == b"another's"


@posix
def test_the_directory_is_synced_after_the_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    fsync, replace = os.fsync, os.replace

    def synced(descriptor: int) -> None:
        done.append("directory" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def renamed(one: Path, other: Path) -> None:
        done.append("rename")
        replace(one, other)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    rewrite(tmp_path / "f", [b"new"])
    assert done == ["file", "rename", "directory"]


@posix
def test_an_opener_for_private_files(tmp_path: Path) -> None:
    with open(tmp_path / "f", "ab", opener=private) as file:
        file.write(b"x")
    assert mode(tmp_path / "f") == 0o600


@posix
def test_the_new_file_is_locked_before_it_has_the_name(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")
    with ReplacementFile(path) as aside:
        aside.write([b"new"])
        descriptor = aside.place()
    with open(path, "rb+") as file:
        assert not lock(file.fileno())
        os.close(descriptor)
        assert lock(file.fileno())


def test_a_file_that_is_not_whole_is_removed(tmp_path: Path) -> None:
    with ReplacementFile(tmp_path / "f") as aside:
        aside.write([b"half"])
    assert os.listdir(tmp_path) == []


@posix
def test_a_file_system_without_locks_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    def refused(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refused)
    rewrite(tmp_path / "file", [b"new"])
    assert (tmp_path / "file").read_bytes() == b"new"


def test_a_file_whose_mode_cannot_be_set_is_removed_and_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path, mode: int) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    (tmp_path / "file").write_bytes(b"old")
    monkeypatch.setattr(os, "chmod", refused)
    closed: list[int] = []
    close = os.close
    monkeypatch.setattr(os, "close", lambda descriptor: [closed.append(descriptor), close(descriptor)])
    with pytest.raises(PermissionError):
        rewrite(tmp_path / "file", [b"new"])
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert len(closed) == 1


def _busy(*paths: Path) -> None:
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))


@pytest.mark.parametrize("way", ["rewrite", "put_in_place", "tape"])
def test_a_file_that_is_mounted_by_itself_stays_and_the_error_names_the_next_step(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`docker run -v FILE:FILE`: the system renames nothing onto such a file."""
    path, fresh = tmp_path / "a.tape", tmp_path / "fresh"
    path.write_bytes(b"old")
    fresh.write_bytes(b"new")
    monkeypatch.setattr(os, "replace", _busy)
    with closing(TapeFile(path)) as tape:
        replaces: dict[str, Callable[[], None]] = {
            "rewrite": lambda: rewrite(path, [b"new"]),
            "put_in_place": lambda: put_in_place(fresh, path),
            "tape": lambda: tape.replace([b"new"]),
        }
        with pytest.raises(OSError, match="mount its folder instead") as caught:
            replaces[way]()
    assert caught.value.errno == errno.EBUSY
    assert path.read_bytes() == b"old"
    assert fresh.read_bytes() == b"new"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.tape", "fresh"]


def test_a_mounted_file_is_refused_before_anything_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a b.tape"
    path.write_bytes(b"")
    mounted = str(path.resolve()).replace(" ", "\\040")
    lines = f"22 1 0:20 / /proc rw - proc proc rw\n36 35 98:0 /x {mounted} rw - ext4 /dev/root rw\n"
    monkeypatch.setattr(Path, "read_text", lambda self, *given: lines)
    with pytest.raises(TapeUnwritable, match=r"a b\.tape: cannot be written: the file is mounted by itself"):
        TapeFile(path)
    with pytest.raises(TapeUnwritable, match="mount its folder instead"):
        StagedRecording(path, goes_on=False)
    check_replaceable(tmp_path / "other.tape")
