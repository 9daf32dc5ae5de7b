"""What runs that were killed leave beside a tape, and when it goes."""

from __future__ import annotations

import os
import time
from pathlib import Path

from wiretape.adapters.update.staged_recording import StagedRecording
from wiretape.tape.atomic import lock

HOUR = 3600


def left(directory: Path, name: str, age: float) -> Path:
    path = directory / name
    path.write_bytes(b"x")
    os.utime(path, (time.time() - age,) * 2)
    return path


def test_recordings_that_nobody_writes_go_with_the_next_one(tmp_path: Path) -> None:
    killed = [
        left(tmp_path, name, HOUR) for name in (".a.tape.99.new", ".a.tape.99.new.journal", ".b.tape.zst.7.new.zst")
    ]
    fresh = left(tmp_path, ".a.tape.98.new", 5)
    others = [left(tmp_path, name, HOUR) for name in (".a.tape.99.old", "a.tape", ".notes.new", ".a.new.tape")]
    StagedRecording(tmp_path / "a.tape", goes_on=False)
    assert [path for path in killed if path.exists()] == []
    assert fresh.exists()
    assert [path for path in others if not path.exists()] == []


def test_a_recording_that_waits_long_for_its_next_call_is_left_alone(tmp_path: Path) -> None:
    written = left(tmp_path, ".a.tape.99.new", HOUR)
    journal = left(tmp_path, ".a.tape.99.new.journal", HOUR)
    with written.open("rb+") as file:
        assert lock(file.fileno())
        StagedRecording(tmp_path / "b.tape", goes_on=False)
        assert (written.exists(), journal.exists()) == (True, True)
    StagedRecording(tmp_path / "b.tape", goes_on=False)
    assert (written.exists(), journal.exists()) == (False, False)
