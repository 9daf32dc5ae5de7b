"""A replay prints no secret of a live request, the environment or the command line."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.support.canaries import PROGRAM, VARIABLE, Planted, planted, printed, token, write_tape

pytestmark = pytest.mark.slow

QUIET = {name: value for name, value in os.environ.items() if not name.endswith(("_BASE_URL", "_API_KEY"))}

Exits = dict[str, str]


@pytest.fixture(scope="module")
def source() -> random.Random:
    return random.Random(10)


@pytest.fixture(scope="module")
def environ(source: random.Random) -> dict[str, str]:
    password = token(source, 18)
    return QUIET | {VARIABLE: token(source, 32), "ANTHROPIC_BASE_URL": f"http://me:{password}@127.0.0.1:9/v1"}


@pytest.fixture(scope="module")
def cases(source: random.Random, environ: dict[str, str]) -> list[Planted]:
    url_password = environ["ANTHROPIC_BASE_URL"].partition("me:")[2].partition("@")[0]
    return [*planted(source, environ[VARIABLE]), Planted("base-url", url_password, b"", b"")]


@pytest.fixture(scope="module")
def tape(tmp_path_factory: pytest.TempPathFactory, cases: list[Planted]) -> Path:
    path = tmp_path_factory.mktemp("exits") / "exits.tape"
    write_tape(path, [case for case in cases if case.body])
    return path


def run(*arguments: str | Path, environ: dict[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, encoding="utf-8", env=environ, cwd=cwd, timeout=120)


def test_a_replay_prints_no_secret(tape: Path, cases: list[Planted], environ: dict[str, str], tmp_path: Path) -> None:
    report, plan, program = tmp_path / "report.json", tmp_path / "plan.json", tmp_path / "program.py"
    plan.write_text(json.dumps([case.asked() for case in cases if case.body]))
    program.write_text(PROGRAM)
    arguments = [token(random.Random(n), 20) for n in range(5)]
    key, equals, url, variable, header = arguments
    given = ["--api-key", key, f"--token={equals}", f"https://u:{url}@h/x", f"DB_PASSWORD={variable}"]
    given += ["-H", f"Authorization: Bearer {header}"]
    command = ["--", sys.executable, str(program), str(plan), *given]
    done = run("wiretape", "replay", "-v", tape, "--report", report, *command, environ=environ, cwd=tmp_path)
    exits = {"stdout": done.stdout, "stderr": done.stderr, "report": report.read_text()}
    assert done.returncode == 3
    told = json.loads(exits["report"])
    assert len(told["missed"]) >= 14, "most requests differ from their recording"
    assert len(told["drifted"]) >= 7
    assert '"param": null' in exits["stdout"] or "no call on" in exits["stdout"], "the 400 bodies are among the exits"
    assert "if the change is intended" in exits["stderr"]
    on_the_command_line = [Planted(f"argv-{n}", secret, b"", b"") for n, secret in enumerate(arguments)]
    assert printed([*cases, *on_the_command_line], exits) == []


def test_pytest_prints_no_secret(tape: Path, cases: list[Planted], environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(json.dumps([case.asked() for case in cases if case.body]))
    (tmp_path / "test_it.py").write_text(
        f"""
import base64, json, httpx, pytest, wiretape

PLAN = json.load(open("plan.json"))

@pytest.mark.parametrize("number", range(len(PLAN)))
@pytest.mark.parametrize("on_miss", ["answer", "raise"])
def test_one(number, on_miss):
    asked = PLAN[number]
    with wiretape.replay({str(tape)!r}, on_miss=on_miss):
        httpx.post("https://api.openai.com/v1" + asked["target"], headers=asked["headers"],
                   content=base64.b64decode(asked["body"]))
"""
    )
    junit = tmp_path / "junit.xml"
    options = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest", f"--junit-xml={junit}")
    done = run("pytest", *options, environ=environ, cwd=tmp_path)
    exits = {"stdout": done.stdout, "stderr": done.stderr, "JUnit": junit.read_text()}
    assert exits["JUnit"].count("no call on") >= 28, "each miss is told in both ways"
    assert printed(cases, exits) == []


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_doctor_prints_no_secret(
    options: tuple[str, ...], cases: list[Planted], environ: dict[str, str], tmp_path: Path
) -> None:
    secret = token(random.Random(1), 20)
    done = run("wiretape", "doctor", *options, "python", "--api-key", secret, environ=environ, cwd=tmp_path)
    assert "ANTHROPIC_BASE_URL" in done.stdout
    argument = Planted("argv", secret, b"", b"")
    assert printed([*cases, argument], {"stdout": done.stdout, "stderr": done.stderr}) == []


@pytest.mark.skipif(find_spec("mitmproxy") is None, reason="the recorder needs mitmproxy (Python 3.12 or later)")
def test_an_error_about_an_option_prints_no_secret(tmp_path: Path) -> None:
    secret = token(random.Random(2), 20)
    done = run("wiretape", "record", "--upstream", f"ftp://me:{secret}@host", "--", "true", environ=QUIET, cwd=tmp_path)
    assert done.returncode == 2
    assert "--upstream" in done.stderr
    assert secret not in done.stderr
