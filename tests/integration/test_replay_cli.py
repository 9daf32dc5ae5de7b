"""The command `wiretape replay`: exit codes, the summary, serving without a program, errors."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from wiretape.model.http import Ended
from wiretape.tape.recording.recorder import Recorder
from wiretape.tape.redaction import Redactor

URL = "https://api.deepseek.com/chat/completions"
QUIET = {name: value for name, value in os.environ.items() if not name.endswith(("_BASE_URL", "_API_KEY"))}
ASK = """
import httpx, os, sys
for text in sys.argv[1:]:
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    key = {"authorization": "Bearer " + os.environ["DEEPSEEK_API_KEY"]}
    answer = httpx.post(os.environ["DEEPSEEK_BASE_URL"] + "/chat/completions", json=body, headers=key).json()
    print(answer["choices"][0]["message"]["content"] if "choices" in answer else "no answer")
"""


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    """Two recorded calls."""
    path = tmp_path / "two.tape"
    recorder = Recorder(path, clock=lambda: 0.0, started=datetime(2026, 2, 28, tzinfo=UTC), redactor=Redactor())
    for text, answer in (("at 15:05:30", "one"), ("second", "two")):
        x = recorder.begin("POST", URL, "1.1", [("content-type", "application/json")])
        recorder.request_data(x, json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}).encode())
        recorder.request_end(x)
        recorder.response(x, 200, [("content-type", "application/json")])
        message = {"choices": [{"message": {"role": "assistant", "content": answer}, "finish_reason": "stop"}]}
        recorder.response_data(x, json.dumps(message).encode())
        recorder.end(x, Ended.COMPLETE)
    assert not recorder.close().incomplete
    return path


def wiretape(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "wiretape", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, encoding="utf-8", env=QUIET, cwd=cwd, timeout=60)


def test_a_program_gets_its_answers_and_the_summary_counts_them(tape: Path) -> None:
    done = wiretape("replay", tape, "--", sys.executable, "-c", ASK, "at 15:05:30", "second")
    assert (done.returncode, done.stdout) == (0, "one\ntwo\n")
    assert "played      2 calls (2 exact)" in done.stderr
    assert "missed" not in done.stderr


def test_drift_is_shown_with_both_values_and_fails_nothing(tape: Path) -> None:
    done = wiretape("replay", tape, "--", sys.executable, "-c", ASK, "at 09:23:47", "second")
    assert (done.returncode, done.stdout) == (0, "one\ntwo\n")
    for part in (
        "drifted     messages[0].content, new in call 1 (masked)",
        "recorded  at 15:05:30",
        "live      at 09:23:47",
    ):
        assert part in done.stderr


def test_a_miss_makes_the_exit_code_3_although_the_program_swallows_it(tape: Path) -> None:
    done = wiretape("replay", tape, "--", sys.executable, "-c", ASK, "at 15:05:30", "third")
    assert (done.returncode, done.stdout) == (3, "one\nno answer\n")
    for part in ("no call on", "recorded  second", "live      third", "left over   call 2 not asked for"):
        assert part in done.stderr


def test_the_programs_own_exit_code_takes_precedence(tape: Path) -> None:
    program = ASK + "sys.exit(7)"
    assert wiretape("replay", tape, "--", sys.executable, "-c", program, "third").returncode == 7
    assert wiretape("replay", tape, "--", sys.executable, "-c", program, "second").returncode == 7


def test_the_report_is_written_as_json(tape: Path, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    wiretape("replay", tape, "--report", file, "--", sys.executable, "-c", ASK, "third")
    report = json.loads(file.read_text())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [missed["reason"] for missed in report["missed"]] == ["never recorded"]
    assert [name["call"] for name in report["left_over"]] == [1, 2]


def test_the_tier_and_repeat_are_settings(tape: Path) -> None:
    exact = wiretape("replay", tape, "--tier", "exact", "--", sys.executable, "-c", ASK, "at 09:23:47")
    assert (exact.returncode, exact.stdout) == (3, "no answer\n")
    again = wiretape("replay", "--repeat", tape, "--", sys.executable, "-c", ASK, "second", "second")
    assert (again.returncode, again.stdout) == (0, "two\ntwo\n")
    assert "1 of them again" in again.stderr


def test_patterns_of_the_project_are_masked(tape: Path, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.wiretape]\nmask = ['sec\\w+']\n")
    done = wiretape("replay", tape, "--", sys.executable, "-c", ASK, "section", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "two\n")


def test_a_replay_without_requests_fails_with_a_hint(tape: Path) -> None:
    done = wiretape("replay", tape, "--", sys.executable, "-c", "print('hello')")
    assert (done.returncode, done.stdout) == (3, "hello\n")
    assert "No model call reached the replay server; nothing of the tape was played (exit\ncode 3)." in done.stderr
    assert "_BASE_URL" in done.stderr


def test_a_program_that_fails_before_any_call_is_reported_and_keeps_its_exit_code(tape: Path) -> None:
    done = wiretape("replay", tape, "--", sys.executable, "-c", "import sys; sys.exit(5)")
    assert done.returncode == 5
    assert done.stderr.splitlines()[-1] == f"{Path(sys.executable).name} exited with 5 before any call reached wiretape"
    assert "No model call" not in done.stderr


def test_tls_that_bypasses_the_base_url_is_a_miss(tape: Path) -> None:
    program = """
import httpx
for host in ("api.deepseek.com", "api.deepseek.com", "telemetry.example.com"):
    try:
        httpx.post(f"https://{host}/chat/completions", json={"model": "m", "messages": []})
    except httpx.ProxyError as error:
        print(error)
"""
    done = wiretape("replay", "--no-proxy", tape, "--", sys.executable, "-c", program)
    assert (done.returncode, done.stdout) == (3, "403 Forbidden\n" * 3)
    for part in (
        "miss  CONNECT api.deepseek.com:443  not opened",
        "api.deepseek.com:443 was blocked (2 times)",
        "DEEPSEEK_BASE_URL",
        "or let wiretape replay intercept TLS: omit --no-proxy",
        "strayed     CONNECT telemetry.example.com:443",
    ):
        assert part in done.stderr
    assert "--pass api.deepseek.com" not in done.stderr


def test_a_miss_prints_the_command_that_fixes_it_on_one_line(tape: Path) -> None:
    program = tape.parent / "my agent.py"
    program.write_text(ASK)
    done = wiretape("replay", tape, "--", sys.executable, program, "third")
    assert f"  wiretape record --update {tape} -- {sys.executable} '{program}' third" in done.stderr.splitlines()[-2]
    again = wiretape("replay", tape, "--", sys.executable, program, "second", "second")
    assert f"  wiretape replay {tape} --repeat -- {sys.executable} '{program}' second second\n" in again.stderr


def test_a_program_of_several_lines_is_not_spelled_out_in_a_command(tape: Path) -> None:
    done = wiretape("replay", tape, "--", sys.executable, "-c", ASK, "third")
    assert f"  wiretape record --update {tape} -- {sys.executable} …\n" in done.stderr


def test_without_a_program_it_serves_until_ctrl_c(tape: Path) -> None:
    command = [sys.executable, "-m", "wiretape", "replay", str(tape)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=QUIET) as running:
        try:
            assert running.stdout is not None
            lines = iter(running.stdout.readline, "")
            exported = next(line for line in lines if line.startswith("export DEEPSEEK_BASE_URL="))
            base = exported.partition("=")[2].strip().strip("'")
            body = {"model": "m", "messages": [{"role": "user", "content": "second"}]}
            answer = httpx.post(f"{base}/chat/completions", json=body, trust_env=False).json()
            assert answer["choices"][0]["message"]["content"] == "two"
        finally:
            running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=20)
    assert running.returncode == 0
    assert "played      1 call (1 exact)" in said


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        (["missing.tape", "--", "true"], 2, "missing.tape"),
        (["{tape}", "--", "no-such-program-here"], 127, "no-such-program-here"),
        (["{empty}", "--", "true"], 2, "empty.tape"),
        (["{tape}", "--pace", "-1", "--", "true"], 2, "--pace"),
        ([], 2, "TAPE"),
        (
            ["{tape}", "python", "a.py"],
            2,
            "`python` is not a tape; did you mean: wiretape replay {tape} -- python a.py",
        ),
        (["{tape}", "--repeat", "python", "-u", "a b"], 2, "wiretape replay {tape} --repeat -- python -u 'a b'"),
        (["{tape}", "other.tape"], 2, "other.tape: no such file"),
        (["{tape}", "--pass", "*", "--", "true"], 2, "--pass * would allow live calls to api.openai.com"),
    ],
)
def test_bad_input_is_one_clear_line(tape: Path, tmp_path: Path, arguments: list[str], code: int, part: str) -> None:
    empty = tmp_path / "empty.tape"
    empty.write_text("")
    done = wiretape("replay", *[argument.format(tape=tape, empty=empty) for argument in arguments])
    assert done.returncode == code
    assert part.format(tape=tape) in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("name", "why"),
    [("no/report.json", "does not exist"), ("two.tape/report.json", "does not exist"), ("", "directory")],
)
def test_an_unwritable_report_is_an_error_before_the_program_runs(tape: Path, name: str, why: str) -> None:
    file = tape.parent / name
    done = wiretape("replay", tape, "--report", file, "--", sys.executable, "-c", "print('ran')")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"wiretape: cannot write the report to {file}: ")
    assert why in done.stderr


def test_a_port_in_use_is_reported(tape: Path) -> None:
    from wiretape.adapters.http1.server import listen

    with listen() as taken:
        port = str(taken.getsockname()[1])
        done = wiretape("replay", tape, "--port", port, "--", "true")
    assert done.returncode == 2
    busy = f"port {port} on 127.0.0.1 is in use: choose another with --port, or omit it for any free one"
    assert done.stderr == f"wiretape: {busy}\n"


@pytest.mark.slow
def test_an_old_tape_causes_a_warning_or_an_error(tape: Path) -> None:
    program = ("--", sys.executable, "-c", ASK, "second")
    told = f"wiretape: {tape} was recorded "
    warned = wiretape("replay", tape, "--max-age", "1h", *program)
    assert (warned.returncode, warned.stdout) == (0, "two\n")
    assert told in warned.stderr
    assert f"  to record it again: wiretape record -o {tape} --force -- {sys.executable} …" in warned.stderr
    (tape.parent / "pyproject.toml").write_text('[tool.wiretape]\nmax_age = "1h"\nmax_age_action = "fail"\n')
    refused = wiretape("replay", tape, *program, cwd=tape.parent)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert told in refused.stderr
    young = wiretape("replay", tape, "--max-age", "100000", *program, cwd=tape.parent)
    assert (young.returncode, told in young.stderr) == (0, False)
    odd = wiretape("replay", tape, "--max-age", "soon", *program)
    assert (odd.returncode, odd.stderr.count("\n")) == (2, 1)
    assert "--max-age: 'soon' is not an age" in odd.stderr
