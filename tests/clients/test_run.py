"""`make clients` without installed clients, and the verdicts of its runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.clients.cases import CASES, Case
from tests.clients.changed import ADDED, changed_command, verdict_of_changed
from tests.clients.page import BEGIN, END, with_rows
from tests.clients.run import Clients, Result, _read_report, _verdict, merged, once, read_results, table

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


def test_a_python_program_has_the_version_of_its_package(tmp_path: Path) -> None:
    clients = Clients(tmp_path / "kit", tmp_path, tmp_path / "wiretape", tmp_path)
    packages = tmp_path / "venv" / "aider" / "lib" / "python3.12" / "site-packages"
    for name in ("aider_chat-0.86.2.dist-info", "python_dotenv-1.2.2.dist-info"):
        (packages / name).mkdir(parents=True)
    assert clients.version(Case("aider", "{d}/venv/aider/bin/aider", ("aider",))) == "0.86.2"
    assert clients.version(Case("py-x", "{d}/venv/aider/bin/python", ("python",))) == ""


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


@pytest.mark.parametrize(
    ("recorded", "replayed"),
    [
        ("done in 0.25 seconds", "done in 1.50 seconds"),
        ("Commit fb86606 README.md", "Commit b5e8159 README.md"),
        ("HTTPSConnectionPool(host='x'): SSLError\nDone", "HTTPSConnectionPool(host='x'): ProxyError\nDone"),
        ("HTTPSConnectionPool(host='x'): SSLError\nDone", "Done\nHTTPSConnectionPool(host='x'): ProxyError"),
        ("Done", "HTTPSConnectionPool(host='x'): ProxyError\n" * 4 + "Done"),
    ],
)
def test_what_a_program_prints_of_its_run_alone_is_no_difference(recorded: str, replayed: str) -> None:
    assert _verdict(Result("x", calls=1), 0, recorded, replayed) == "ok"


def test_what_a_parent_says_each_time_it_hears_of_a_subagent_counts_once() -> None:
    assert once("Both answered.\n\nBoth answered.\n\nBye.") == "Both answered.\n\nBye."
    assert once("A answered.\n\nB answered.\n\nA answered.") == "A answered.\n\nB answered.\n\nA answered."


class _Scripted(Clients):
    """Fake runs: each replay ends with `code`, and reports `misses` and one played call."""

    def __init__(self, keep: Path, code: int, misses: list[str]) -> None:
        super().__init__(keep, keep, keep / "wiretape", keep, sealed=True)
        self.code, self.misses, self.commands = code, misses, list[list[str]]()

    def _drive(self, case: Case, what: str, command: list[str], *more: str) -> int:
        self.commands.append(command)
        played = [{"tier": "exact", "answer": {"call": 1}}]
        missed = [{"message": message} for message in self.misses]
        report = {"played": played, "missed": missed, "drifted": [], "left_over": []}
        self._report(case, what).write_text(json.dumps(report))
        return self.code

    def _said(self, case: Case) -> str:
        return "said"


@pytest.mark.parametrize(
    ("code", "misses", "verdict"),
    [
        (0, [], "ok"),
        (3, ["no call"], "sealed: missed"),
        (2, [], "sealed: the replay ended with 2"),
    ],
)
def test_a_sealed_replay_must_do_as_well(tmp_path: Path, code: int, misses: list[str], verdict: str) -> None:
    clients = _Scripted(tmp_path, code, misses)
    tape = tmp_path / "x.tape"
    assert clients._sealed(Case("x", "x", ("x",)), tape, ["x"], "said") == verdict
    assert clients._sealed(Case("x", "x", ("x",)), tape, ["x"], "other") != "ok"
    wiretape, report = tmp_path / "wiretape", tmp_path / "x.sealed.json"
    replay = [str(wiretape), "replay", "--sealed", "--report", str(report), str(tape), "--", "x"]
    assert clients.commands == [replay, replay]


def test_the_table_has_a_line_for_each_result() -> None:
    assert table([Result("codex", "0.1", 2, verdict="ok")]).splitlines()[1].startswith("codex  0.1      2")


def test_several_runs_are_one_row_and_the_worst_verdict_stays() -> None:
    runs = [
        Result("x", calls=2, tiers=Counter(exact=2), verdict="ok"),
        Result("x", calls=2, tiers=Counter(exact=1), misses=["no call"], verdict="missed"),
        Result("x", calls=2, tiers=Counter(masked=2), verdict="ok"),
        Result("y", calls=1, verdict="ok"),
    ]
    one, other = merged(runs)
    assert one.cells == ("x", "", "6", "3", "0", "2", "1", "0", "0 s", "missed (3 runs)")
    assert other.verdict == "ok"


def test_results_that_were_written_can_be_read_again(tmp_path: Path) -> None:
    result = Result("x", "1", 2, Counter(exact=2), verdict="ok")
    (tmp_path / "results.json").write_text(json.dumps([vars(result)]))
    assert read_results([tmp_path / "results.json"]) == [result]


def test_rows_of_the_page_are_replaced_and_the_others_stay() -> None:
    columns = ("case", "calls", "seen")
    page = f"above\n{BEGIN}\n{END}\nbelow\n"
    first = with_rows(page, columns, [("b", "1", "monday"), ("a", "2", "monday")], ["a", "b"])
    again = with_rows(first, columns, [("b", "3", "friday")], ["a", "b"])
    table_now = "| case | calls | seen |\n|---|---|---|\n| a | 2 | monday |\n| b | 3 | friday |"
    assert again == f"above\n{BEGIN}\n{table_now}\n{END}\nbelow\n"
    with pytest.raises(ValueError, match="no lines"):
        with_rows("nothing", columns, [], [])


def test_a_prompt_is_changed_among_the_words_or_in_a_copy_of_the_script(tmp_path: Path) -> None:
    assert changed_command(["cli", "-p", "PARENT: delegate", "--yolo"], tmp_path) == [
        "cli",
        "-p",
        f"PARENT: delegate {ADDED}",
        "--yolo",
    ]
    script = tmp_path / "kit" / "client.py"
    script.parent.mkdir()
    script.write_text('import sys\nPROMPT = "What?"\nprint(PROMPT)\n')
    assert changed_command(["python", str(script), "chat"], tmp_path) == ["python", str(tmp_path / "client.py"), "chat"]
    assert (tmp_path / "client.py").read_text() == f'import sys\nPROMPT = "What? {ADDED}"\nprint(PROMPT)\n'
    script.write_text("print()\n")
    with pytest.raises(ValueError, match="no prompt"):
        changed_command(["python", str(script)], tmp_path)


def test_every_case_has_a_prompt_to_change(tmp_path: Path) -> None:
    (tmp_path / "py").mkdir()
    (tmp_path / "py" / "client.py").write_text('PROMPT = "What?"\n')
    for case in CASES:
        command = [word.replace("{kit}", str(tmp_path)) for word in case.command]
        assert changed_command(command, tmp_path) != command


_NAMED = f"no call answers\n  recorded  … Read it\n  live      … Read it {ADDED}\n  to record it: wiretape"


@pytest.mark.parametrize(
    ("code", "misses", "verdict"),
    [
        (3, [_NAMED], "ok"),
        (1, ["no call of a title", _NAMED], "ok"),
        (0, [], "a changed prompt was not missed, the replay ended with 0"),
        (0, [_NAMED], "a changed prompt was missed, but the replay ended with 0"),
        (3, [f"no call\n  to record it: wiretape -- 'Read it {ADDED}'"], "a changed prompt was missed, but not named"),
    ],
)
def test_a_changed_prompt_must_be_missed_and_named(code: int, misses: list[str], verdict: str) -> None:
    assert verdict_of_changed(code, misses) == verdict
