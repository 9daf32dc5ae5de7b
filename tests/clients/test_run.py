"""What `make clients` does where there is nothing to run, and how it judges what it ran."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.cases import CASES, Case
from tests.clients.run import Clients, Result, _read_report, _verdict, table

RUN = Path(__file__).parent / "run.py"


def test_without_kit_and_clients_it_says_so_and_fails_nothing(tmp_path: Path) -> None:
    environ = {**os.environ, "CLIENTS_DIR": str(tmp_path)}
    command = [sys.executable, str(RUN), "--kit", str(tmp_path / "kit")]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert "nothing was run" in done.stdout
    assert str(tmp_path / "kit" / "drive.py") in done.stdout


def test_names_of_cases_are_told_apart() -> None:
    names = [case.name for case in CASES]
    assert len(names) == len(set(names))


def test_a_case_runs_only_where_its_client_is_installed(tmp_path: Path) -> None:
    clients = Clients(tmp_path / "kit", tmp_path, tmp_path / "wiretape", tmp_path)
    case = Case("x", "{d}/npm/x/node_modules/.bin/x", ("x",))
    assert not clients.has(case)
    program = tmp_path / "npm" / "x" / "node_modules" / ".bin" / "x"
    (program.parent.parent / "x").mkdir(parents=True)
    program.parent.mkdir()
    (program.parent.parent / "x" / "cli.js").write_text("")
    (program.parent.parent / "x" / "package.json").write_text('{"version": "1.2.3"}')
    program.symlink_to("../x/cli.js")
    assert clients.has(case)
    assert clients.version(case) == "1.2.3"


def test_a_report_is_counted(tmp_path: Path) -> None:
    played = [
        {"tier": "exact", "answer": {"call": 1}},
        {"tier": "masked", "answer": {"call": 2}},
        {"tier": "exact", "answer": {"call": None}},
    ]
    report = {
        "played": played,
        "missed": [{"message": "no call"}],
        "drifted": [{"where": "system"}],
        "left_over": [{"call": 3}, {"call": None}],
    }
    (tmp_path / "report.json").write_text(json.dumps(report))
    result = Result("x", "1.2.3")
    _read_report(tmp_path / "report.json", result)
    assert result.cells[:8] == ("x", "1.2.3", "3", "1", "0", "1", "1", "1")


@pytest.mark.parametrize(
    ("result", "code", "replayed", "verdict"),
    [
        (Result("x", calls=2), 0, "said", "ok"),
        (Result("x", calls=2, misses=["no call"]), 3, "said", "missed"),
        (Result("x", calls=2), "timeout", "said", "the replay ended with timeout"),
        (Result("x"), 0, "said", "no model call came by"),
        (Result("x", calls=2), 0, "other", "played, but the program said something else"),
    ],
)
def test_what_is_right(result: Result, code: int | str, replayed: str, verdict: str) -> None:
    assert _verdict(result, code, "said", replayed) == verdict


def test_the_table_in_both_forms() -> None:
    results = [Result("codex", "0.1", 2, verdict="ok")]
    assert table(results, markdown=False).splitlines()[1].startswith("codex  0.1      2")
    assert table(results, markdown=True).splitlines()[2].startswith("| codex | 0.1 | 2 |")
