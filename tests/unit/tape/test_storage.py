"""The free names of new tapes."""

from __future__ import annotations

from pathlib import Path

from wiretape.tape.storage import free_derived_name, free_name, journal_path


def test_a_free_name_skips_tapes_and_journals(tmp_path: Path) -> None:
    path = tmp_path / "run.tape"
    assert free_name(path) == path
    path.touch()
    assert free_name(path) == tmp_path / "run-2.tape"
    journal_path(tmp_path / "run-2.tape").touch()
    assert free_name(path) == tmp_path / "run-3.tape"


def test_a_free_name_beside_a_tape_begins_with_2_and_keeps_its_endings(tmp_path: Path) -> None:
    assert free_name(tmp_path / "run.tape.zst", first=2) == tmp_path / "run-2.tape.zst"


def test_a_derived_name_is_uncompressed_and_skips_tapes_and_journals(tmp_path: Path) -> None:
    tape = tmp_path / "run.tape.zst"
    assert free_derived_name(tape, "fork-3") == tmp_path / "run-fork-3.tape"
    (tmp_path / "run-fork-3.tape").touch()
    journal_path(tmp_path / "run-fork-3-2.tape").touch()
    assert free_derived_name(tape, "fork-3") == tmp_path / "run-fork-3-3.tape"
