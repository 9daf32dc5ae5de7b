"""Continuing a tape: what a crash or an editor left is mended first."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from pathlib import Path

import orjson
import pytest
from tests.support.taping import Taping

from wiretape.errors import TapeError, TapeUnwritable
from wiretape.model.http import Ended, body_bytes
from wiretape.tape.reading.reader import read_tape
from wiretape.tape.storage import TapeFile, journal_path


def recorded(path: Path) -> None:
    taping = Taping(path)
    for number in range(3):
        taping.call(orjson.dumps({"n": number, "pad": "x" * 300}), [b'{"ok":%d}' % number])
    taping.recorder.close()


def continued(path: Path, torn: bool = False) -> None:
    taping = Taping(path, append=True)
    taping.call(b'{"n":"new"}', [b"{}"])
    assert ["cut off" in trouble for trouble in taping.recorder.close().troubles] == [True] * torn


def check(path: Path, calls: int) -> None:
    tape = read_tape(path)
    assert tape.warnings == ()
    assert [exchange.number for exchange in tape.exchanges] == list(range(1, calls + 1))
    assert body_bytes(tape.exchanges[-1].request.body) == b'{"n":"new"}'


@pytest.mark.parametrize("name", ["run.tape", "run.tape.zst"])
def test_a_tape_is_continued(tmp_path: Path, name: str) -> None:
    if name.endswith(".zst"):
        pytest.importorskip("backports.zstd", reason="needs the extra zstd")
    recorded(tmp_path / name)
    continued(tmp_path / name)
    check(tmp_path / name, 4)


def test_continuing_leaves_what_is_there_untouched(tmp_path: Path) -> None:
    path = tmp_path / "run.tape"
    recorded(path)
    before = path.read_bytes()
    continued(path)
    assert path.read_bytes().startswith(before + b"\n{")


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.rstrip(),
        lambda text: text + "\n\n\n",
        lambda text: "".join(orjson.dumps(orjson.loads(d)).decode() + "\n" for d in text.split("\n\n")),
    ],
    ids=["CRLF", "no last newline", "more newlines", "JSON Lines"],
)
def test_a_tape_that_an_editor_saved_otherwise_is_continued(tmp_path: Path, edit: object) -> None:
    path = tmp_path / "run.tape"
    recorded(path)
    assert callable(edit)
    path.write_bytes(edit(path.read_text()).encode())
    continued(path)
    check(path, 4)


@pytest.mark.parametrize("lost", [1, 40, 120])
def test_a_torn_last_document_is_cut_off(tmp_path: Path, lost: int) -> None:
    path = tmp_path / "run.tape"
    recorded(path)
    path.write_bytes(path.read_bytes()[:-lost].rstrip(b"}\n") if lost == 1 else path.read_bytes()[:-lost])
    continued(path, torn=True)
    tape = read_tape(path)
    assert tape.warnings == ()
    assert [x.number for x in tape.exchanges] == [1, 2, 3, 4]
    assert tape.exchanges[2].ended is Ended.RECORDER_STOPPED  # its response was torn
    assert tape.exchanges[2].response is None


def test_a_broken_tape_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "run.tape"
    recorded(path)
    text = path.read_text().replace('"method": "POST"', '"method": POST', 1)
    path.write_text(text)
    with pytest.raises(TapeError, match=r"run\.tape:"):
        Taping(path, append=True)
    assert path.read_text() == text


def test_a_missing_tape_is_begun(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "new.tape"
    taping = Taping(path, append=True)
    taping.call(b'{"n":"new"}', [b"{}"])
    taping.recorder.close()
    check(path, 1)


def test_without_the_library_a_compressed_tape_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wiretape.tape import storage

    monkeypatch.setattr(storage, "zstd_library", lambda: None)
    with pytest.raises(TapeError, match=r"pip install 'wiretape\[zstd\]'"):
        Taping(tmp_path / "run.tape.zst")
    (tmp_path / "old.tape.zst").write_bytes(b"x")
    with pytest.raises(TapeError, match=r"pip install 'wiretape\[zstd\]'"):
        read_tape(tmp_path / "old.tape.zst")


def test_a_header_that_was_edited_by_hand_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "run.tape"
    recorded(path)
    header, _, rest = path.read_text().partition("\n\n")
    edited = {**orjson.loads(header), "note": "mine"}
    path.write_text(orjson.dumps(edited).decode() + "\n\n" + rest)
    taping = Taping(path, append=True)
    taping.recorder.bypassed("pypi.example")
    taping.call(b'{"n":"new"}', [b"{}"])
    taping.recorder.close()
    check(path, 4)
    assert (read_tape(path).header.note, read_tape(path).header.bypassed) == ("mine", ["pypi.example"])


def test_what_a_torn_document_held_is_kept_and_said(tmp_path: Path) -> None:
    path = tmp_path / "run.tape"
    recorded(path)
    text = path.read_bytes()
    path.write_bytes(text[:-30])
    torn = text[:-30].split(b"\n\n")[-1]
    taping = Taping(path, append=True)
    assert len(taping.troubles) == 1
    assert "the last document is cut off" in taping.troubles[0]
    assert str(tmp_path / "run.tape.torn") in taping.troubles[0]
    summary = taping.recorder.close()
    assert not summary.incomplete
    assert (tmp_path / "run.tape.torn").read_bytes() == torn + b"\n"
    assert [x.ended for x in read_tape(path).exchanges] == [Ended.COMPLETE, Ended.COMPLETE, Ended.RECORDER_STOPPED]


# -- what is on disk while a tape is rewritten -------------------------------------------------------------------------


def killed(path: Path) -> bytes:
    """A tape that its recorder was killed over: it must be rewritten to go on. Its text."""
    taping = Taping(path)
    for number in range(3):
        taping.call(b'{"n":%d}' % number, [b'{"answer":%d}' % number])
    journal = journal_path(path)
    kept = journal.read_bytes()
    taping.recorder.close()
    journal.write_bytes(kept)
    with path.open("ab") as file:
        file.write(b'\n{"exchange": 9, "at": 1, "requ')
    return path.read_bytes()


@pytest.mark.parametrize("operation", ["write", "fsync", "replace"])
def test_a_full_disk_leaves_the_tape_and_its_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    path = tmp_path / "full.tape"
    before, journal = killed(path), journal_path(path).read_bytes()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, operation, full)
    with pytest.raises(TapeUnwritable, match=r"full\.tape: cannot be written: No space left on device"):
        Taping(path, append=True)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert journal_path(path).read_bytes() == journal
    assert sorted(os.listdir(tmp_path)) == ["full.tape", "full.tape.journal"]
    assert len(read_tape(path).exchanges) == 3
    Taping(path, append=True).recorder.close()
    assert [x.ended for x in read_tape(path).exchanges] == [Ended.COMPLETE] * 3


def test_a_new_tape_that_cannot_be_begun_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(TapeUnwritable):
        Taping(tmp_path / "new.tape")
    monkeypatch.undo()
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_journals_and_torn_parts_are_private_and_tapes_follow_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "mode.tape"
    before = os.umask(0o022)
    try:
        killed(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o644
        journal_path(path).unlink()  # then the torn end is kept
        taping = Taping(path, append=True)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert stat.S_IMODE(journal_path(path).stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "mode.tape.torn").stat().st_mode) == 0o600
    path.chmod(0o664)
    taping.call(b"{}", [b"{}"], request_headers=[("authorization", "Bearer abcdefghijklmnop1234")])
    taping.recorder.close()  # with another header
    assert stat.S_IMODE(path.stat().st_mode) == 0o664


def test_a_tape_that_is_rewritten_stays_locked(tmp_path: Path) -> None:
    path = tmp_path / "locked.tape"
    killed(path)
    taping = Taping(path, append=True)
    with pytest.raises(TapeUnwritable, match="is being written by another wiretape"):
        TapeFile(path)
    assert len(read_tape(path).exchanges) == 3  # a reader needs no lock
    taping.recorder.close()
    TapeFile(path).close()


def test_a_tape_that_was_recorded_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "race.tape"
    Taping(path).recorder.close()
    Taping(path, replace=False).recorder.close()  # it has no exchanges: there is nothing to lose
    taping = Taping(path)
    taping.call(b"{}", [b"{}"])
    taping.recorder.close()
    with pytest.raises(TapeUnwritable, match="another wiretape has recorded it meanwhile"):
        Taping(path, replace=False)
    assert len(read_tape(path).exchanges) == 1


# -- tapes that are removed while they are recorded --------------------------------------------------------------------


def test_the_journal_keeps_the_calls_of_a_tape_that_was_removed(tmp_path: Path) -> None:
    path = tmp_path / "gone.tape"
    taping = Taping(path)
    taping.call(b'{"n":1}', [b"{}"])
    path.unlink()
    taping.call(b'{"n":2}', [b"{}"])
    summary = taping.recorder.close()
    assert summary.incomplete
    assert summary.exchanges == len(read_tape(path).exchanges) == 2
    assert taping.troubles == [
        f"{path}: recording is incomplete: another program removed or replaced the file; record again"
    ]


def test_a_directory_that_was_removed_leaves_nothing_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "captures" / "gone.tape"
    taping = Taping(path)
    taping.call(b'{"n":1}', [b"{}"])
    shutil.rmtree(path.parent)
    summary = taping.recorder.close()
    assert summary.incomplete
    assert summary.exchanges == 0
    assert not path.parent.exists()


def test_a_tape_that_took_the_name_is_not_overwritten(tmp_path: Path) -> None:
    path, other = tmp_path / "taken.tape", tmp_path / "other.tape"
    taping = Taping(path)
    taping.call(b'{"n":1}', [b"{}"], request_headers=[("authorization", "Bearer abcdefghijklmnop1234")])
    Taping(other).recorder.close()
    text = other.read_bytes()
    os.replace(other, path)
    summary = taping.recorder.close()
    assert path.read_bytes() == text
    assert read_tape(path).exchanges == ()
    assert (summary.incomplete, summary.exchanges) == (True, 1)
    assert summary.path == tmp_path / "taken-2.tape"
    assert len(read_tape(summary.path).exchanges) == 1
    assert taping.troubles[-1] == f"{path} is another file now; what was recorded is on {summary.path}"


def test_the_journal_of_another_recorder_stays(tmp_path: Path) -> None:
    path = tmp_path / "two.tape"
    first = Taping(path)
    for name in os.listdir(tmp_path):
        (tmp_path / name).unlink()
    second = Taping(path)
    second.call(b"{}", [b"{}"])
    first.recorder.close()
    assert journal_path(path).exists()
    second.recorder.close()
    assert not read_tape(path).incomplete
