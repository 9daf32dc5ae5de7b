"""Notes beside a tape: kept whole, or not at all."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from wiretape.errors import TapeError, TapeUnwritable
from wiretape.tape.notes import NoteDocument, notes_file


def test_notes_come_back(tmp_path: Path) -> None:
    file = notes_file(tmp_path / "a.tape")
    assert file.read() == []
    note = NoteDocument(call=3, phase="tool", tool=0, text="时区")
    file.write([note, NoteDocument(call=1, text="one")])
    assert file.read() == [note, NoteDocument(call=1, text="one")]
    assert [path.name for path in tmp_path.iterdir()] == ["a.tape.notes"]
    assert json.loads(file.path.read_text(encoding="utf-8"))["wiretape_notes"] == 1


def test_notes_can_be_read_by_their_user_alone(tmp_path: Path) -> None:
    notes = notes_file(tmp_path / "a.tape")
    notes.write([NoteDocument(call=1, text="here")])
    assert stat.S_IMODE(notes.path.stat().st_mode) == 0o600


def test_without_notes_there_is_no_file(tmp_path: Path) -> None:
    file = notes_file(tmp_path / "a.tape")
    file.write([])
    file.write([NoteDocument(call=1, text="one")])
    file.write([])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"wiretape_notes": 1, "notes": [{"call": 0, "text": ""}]}', "\xff"])
def test_what_holds_no_notes_is_named(tmp_path: Path, text: str) -> None:
    file = notes_file(tmp_path / "a.tape")
    file.path.write_text(text, encoding="latin-1")
    with pytest.raises(TapeError, match=r"a\.tape\.notes: holds no notes .*mend it or move it away"):
        file.read()


def test_notes_of_a_newer_version_are_refused(tmp_path: Path) -> None:
    file = notes_file(tmp_path / "a.tape")
    file.path.write_text('{"wiretape_notes": 2, "notes": []}', encoding="utf-8")
    with pytest.raises(TapeError, match="newer wiretape"):
        file.read()


def test_a_write_that_fails_leaves_the_notes_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = notes_file(tmp_path / "a.tape")
    file.write([NoteDocument(call=1, text="one")])

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(TapeUnwritable, match="No space left"):
        file.write([NoteDocument(call=1, text="two")])
    assert [note.text for note in file.read()] == ["one"]
    assert [path.name for path in tmp_path.iterdir()] == ["a.tape.notes"]


def test_a_note_typed_in_another_encoding_does_not_spoil_the_others(tmp_path: Path) -> None:
    file = notes_file(tmp_path / "a.tape")
    file.write([NoteDocument(call=1, text="one \udce9"), NoteDocument(call=2, text="two")])
    assert [note.text for note in file.read()] == ["one ?", "two"]
