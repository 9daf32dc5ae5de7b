"""The captured programs, replayed from their tapes: offline, on a later day, and with a changed tool."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.support.make_captures import CAPTURE_LIST, ROOT, Capture, environment

from wiretape.demo.upstream import Upstream, serve

BY_NAME = {capture.name: capture for capture in CAPTURE_LIST}
SUBAGENTS = "wiretape.demo.subagents"
BASE_URLS = ("DEEPSEEK_BASE_URL", "OPENAI_BASE_URL")


@dataclass(frozen=True, slots=True)
class Replayed:
    """A finished `wiretape replay`: what the program printed, how it ended, and the replay's own report."""

    code: int
    stdout: str
    stderr: str
    report: dict[str, Any]

    @property
    def calls(self) -> list[int]:
        return [played["answer"]["call"] for played in self.report["played"]]


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with serve() as running:
        yield running


def replay(tape: Path, program: list[str], folder: Path) -> Replayed:
    """Run a program from a tape, in an environment that knows of no models."""
    report = folder / "report.json"
    wiretape = [sys.executable, "-m", "wiretape", "replay", str(tape), "--report", str(report), "--"]
    variables = {name: value for name, value in os.environ.items() if name not in BASE_URLS}
    done = subprocess.run(
        [*wiretape, sys.executable, *program],
        capture_output=True,
        encoding="utf-8",
        cwd=ROOT,
        env={**variables, "OPENAI_API_KEY": "another-key-than-the-recorded-one"},
        timeout=120,
    )
    return Replayed(done.returncode, done.stdout, done.stderr, json.loads(report.read_text(encoding="utf-8")))


def without_clock(arguments: tuple[str, ...]) -> list[str]:
    """The arguments of a later day: no clock is frozen."""
    kept, values = [], iter(arguments)
    for value in values:
        if value == "--clock":
            next(values)
        else:
            kept.append(value)
    return kept


@pytest.mark.slow
@pytest.mark.parametrize("capture", CAPTURE_LIST, ids=lambda capture: capture.name)
def test_a_program_prints_the_same_on_a_later_day(capture: Capture, upstream: Upstream, tmp_path: Path) -> None:
    first_day = subprocess.run(
        capture.command, capture_output=True, encoding="utf-8", cwd=ROOT, env=environment(upstream), timeout=120
    )
    later = replay(capture.path, ["-m", capture.module, *without_clock(capture.arguments)], tmp_path)
    assert later.stdout == first_day.stdout != ""
    assert later.code == 0
    assert (later.report["missed"], later.report["left_over"], later.report["strayed"]) == ([], [], [])


@pytest.mark.slow
@pytest.mark.parametrize("capture", CAPTURE_LIST, ids=lambda capture: capture.name)
def test_program_with_the_recorded_clock_does_not_drift(capture: Capture, tmp_path: Path) -> None:
    again = replay(capture.path, ["-m", capture.module, *capture.arguments], tmp_path)
    assert again.report["drifted"] == []
    assert {played["tier"] for played in again.report["played"]} == {"exact"}


def test_moved_clock_of_the_system_prompt_is_drift_with_both_values(tmp_path: Path) -> None:
    program = ["-m", "wiretape.demo.customer_service", "--clock", "2026-03-05T09:00:01"]
    later = replay(BY_NAME["weather-one-tool"].path, [*program, "--clock", "2026-03-05T09:10:00"], tmp_path)
    assert (later.code, later.calls) == (0, [1, 2, 3])
    first = later.report["drifted"][0]
    assert (first["tier"], first["where"]) == ("masked", "messages[0].content")
    assert "2026年02月28日 15时05分30秒 星期六" in first["recorded"]
    assert "2026年03月05日 09时00分01秒 星期四" in first["live"]
    assert "2026年02月28日 15时05分30秒 星期六" in later.stderr
    assert "2026年03月05日 09时00分01秒 星期四" in later.stderr


def test_changed_title_is_a_miss_that_names_call_path_and_both_values(tmp_path: Path) -> None:
    changed = replay(BY_NAME["subagents"].path, ["-m", SUBAGENTS, "--title", "设计评审会"], tmp_path)
    assert changed.calls == [1, 2]
    (miss,) = changed.report["missed"]
    assert (miss["reason"], miss["nearest"]["call"]) == ("diverged", 3)
    assert miss["differences"] == [
        {
            "where": "input[3].output",
            "recorded": "OK: created '产品评审会' at 2025-06-11T15:00:00 for 60 min",
            "live": "OK: created '设计评审会' at 2025-06-11T15:00:00 for 60 min",
        }
    ]
    assert (changed.code, changed.stdout) == (1, "")  # the program's own code goes first
    shown_by_the_program = changed.stderr[changed.stderr.index("refused (400)") :]
    for part in ("call 3", "input[3].output", "产品评审会", "设计评审会"):
        assert part in shown_by_the_program


def test_changed_start_plays_and_is_drift_with_both_values(tmp_path: Path) -> None:
    moved = replay(BY_NAME["subagents"].path, ["-m", SUBAGENTS, "--start", "2025-06-12T16:30:00"], tmp_path)
    assert (moved.code, moved.calls, moved.report["missed"]) == (0, [1, 2, 3, 4], [])
    (drift,) = moved.report["drifted"]
    assert (drift["tier"], drift["where"], [call["call"] for call in drift["calls"]]) == (
        "masked",
        "input[3].output",
        [3],
    )
    assert drift["recorded"] == "OK: created '产品评审会' at 2025-06-11T15:00:00 for 60 min"
    assert drift["live"] == "OK: created '产品评审会' at 2025-06-12T16:30:00 for 60 min"


@pytest.mark.slow
def test_sdk_shows_a_miss_and_does_not_retry(tmp_path: Path) -> None:
    program = ["-m", "tests.support.agents_clock_thinking", "--tool-says", "unknown time zone"]
    changed = replay(BY_NAME["clock-thinking"].path, program, tmp_path)
    assert len(changed.report["missed"]) == 1  # a retry would be another
    assert "BadRequestError" in changed.stderr
    for part in ("call 2", "messages[2].content", "2026年06月20日星期六 22:34:43", "unknown time zone"):
        assert part in changed.stderr
    assert changed.code == 1


def test_program_that_swallows_a_miss_cannot_hide_it(tmp_path: Path) -> None:
    swallow = "import httpx, os; httpx.post(os.environ['DEEPSEEK_BASE_URL'] + '/responses', json={'input': 'hello'})"
    hidden = replay(BY_NAME["subagents"].path, ["-c", swallow], tmp_path)
    assert hidden.code == 3
    assert len(hidden.report["missed"]) == 1
    assert len(hidden.report["left_over"]) == 4
