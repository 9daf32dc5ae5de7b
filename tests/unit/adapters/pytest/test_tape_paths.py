"""Where tapes of tests are, and how their places are told."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from wiretape.adapters.pytest.tape_paths import shown


def test_a_place_is_told_as_one_would_type_it_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert shown(tmp_path / "captures" / "a.tape") == Path("captures", "a.tape")
    assert shown(tmp_path.parent / "a.tape") == tmp_path.parent / "a.tape"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows removes no directory that somebody is in")
def test_a_test_may_remove_the_directory_that_it_went_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert shown(tmp_path / "a.tape") == tmp_path / "a.tape"
