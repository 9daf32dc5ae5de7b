from __future__ import annotations

from pathlib import Path

import pytest

from wiretape.adapters.old_tape import OldTape
from wiretape.errors import TapeUnwritable
from wiretape.tape.storage import journal_path


def test_it_is_put_back_with_its_journal(tmp_path: Path) -> None:
    tape = tmp_path / "a.tape"
    tape.write_text("old")
    journal_path(tape).write_text("in flight")
    old = OldTape(tape)
    assert old
    tape.write_text("new")
    journal_path(tape).unlink()
    assert old.put_back()
    assert (tape.read_text(), journal_path(tape).read_text()) == ("old", "in flight")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tape", "a.tape.journal"]
    assert not old.put_back()


def test_it_is_forgotten_when_something_took_its_place(tmp_path: Path) -> None:
    tape = tmp_path / "a.tape"
    tape.write_text("old")
    old = OldTape(tape)
    tape.write_text("new")
    old.forget()
    assert [path.read_text() for path in tmp_path.iterdir()] == ["new"]


def test_without_an_old_one_there_is_nothing_to_put_back(tmp_path: Path) -> None:
    old = OldTape(tmp_path / "a.tape")
    assert not old
    assert not old.put_back()
    (tmp_path / "b.tape").touch()
    assert not OldTape(tmp_path / "b.tape")


def test_what_cannot_be_kept_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tape = tmp_path / "a.tape"
    tape.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shutil.copy2", full)
    with pytest.raises(TapeUnwritable, match=r"a\.tape: cannot be kept while it is replaced: No space left"):
        OldTape(tape)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_the_journal_of_a_recorder_that_failed_does_not_stay_beside_the_old_tape(tmp_path: Path) -> None:
    tape = tmp_path / "a.tape"
    tape.write_text("old")
    old = OldTape(tape)
    tape.write_text("new")
    journal_path(tape).write_text("new")
    assert old.put_back()
    assert tape.read_text() == "old"
    assert not journal_path(tape).exists()
