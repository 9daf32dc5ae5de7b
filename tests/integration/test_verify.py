"""`wiretape verify`: a live run against a tape, and two tapes against each other."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.counting import CountingModel

from wiretape.tape.reading.reader import read_tape
from wiretape.tape.writing.writer import write_tape

pytestmark = pytest.mark.slow

WIRETAPE = [sys.executable, "-m", "wiretape"]
CAPTURES = Path(__file__).parent.parent.parent / "captures"
AGENT = """
    import json, os, sys, urllib.request
    for text in sys.argv[1:]:
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}).encode()
        headers = {"content-type": "application/json", "user-agent": "agent/" + os.environ.get("VERSION", "1")}
        url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=30) as answer:
            print(json.load(answer)["choices"][0]["message"]["content"])
    sys.exit(int(os.environ.get("CODE", "0")))
"""


@pytest.fixture
def model() -> Iterator[CountingModel]:
    with CountingModel() as running:
        yield running


@pytest.fixture
def environ(tmp_path: Path, model: CountingModel) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.upper().endswith(("_PROXY", "_BASE_URL"))}
    (tmp_path / "agent.py").write_text(textwrap.dedent(AGENT))
    return {**kept, "XDG_STATE_HOME": str(tmp_path / "state"), "OPENAI_API_KEY": "sk-no", "OPENAI_BASE_URL": model.url}


def wiretape(environ: dict[str, str], *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*WIRETAPE, *words], env={**environ, **more}, capture_output=True, text=True, timeout=120)


@pytest.mark.proxy
def test_a_live_run_is_compared_with_the_tape_which_stays_unchanged(
    tmp_path: Path, environ: dict[str, str], model: CountingModel
) -> None:
    pytest.importorskip("mitmproxy", reason="the recorder needs mitmproxy (Python 3.12 or later)")
    tape, live = tmp_path / "a.tape", tmp_path / "live.tape"
    program = ["--", sys.executable, str(tmp_path / "agent.py")]
    assert wiretape(environ, "record", "-o", str(tape), *program, "one", "two").returncode == 0
    before = tape.read_bytes()

    done = wiretape(environ, "verify", str(tape), *program, "one", "two")
    assert done.returncode == 0, done.stderr
    assert "fresh: 2 calls, nothing has changed" in done.stdout
    assert "answer 3 to: one" in done.stderr, "what the program says is not the result"
    assert "runs LIVE, with real models" in done.stderr

    drifted = wiretape(
        environ, "verify", "--json", "--keep", str(live), str(tape), *program, "one", "zwei", VERSION="2"
    )
    assert drifted.returncode == 1, drifted.stderr
    found: dict[str, Any] = json.loads(drifted.stdout)
    assert [(call["verdict"], call["recorded"], call["live"], call["tier"]) for call in found["calls"]] == [
        ("same", 1, 1, "exact"),
        ("changed", 2, 2, None),
    ]
    assert found["versions"] == [{"header": "user-agent", "recorded": ["agent/1"], "live": ["agent/2"]}]
    assert (found["kept"], len(read_tape(live).exchanges)) == (str(live), 2)

    failed = wiretape(environ, "verify", str(tape), *program, "one", CODE="5")
    assert failed.returncode == 5, "what it came to has not changed"
    assert "fresh so far: 1 call, nothing has changed; 1 of the tape not reached" in " ".join(failed.stdout.split())
    assert "exited with 5, and did not reach 1 call of the tape" in failed.stderr
    failed = wiretape(environ, "verify", str(tape), *program, CODE="1")
    assert (failed.returncode, failed.stdout) == (2, ""), "1 says that the tape has drifted"
    assert "exited with 1: nothing was compared (exit code 2: 1 means that the tape has drifted)" in failed.stderr
    idle = wiretape(environ, "verify", str(tape), *program)
    assert (idle.returncode, idle.stdout) == (2, "")
    assert "NO MODEL CALL WAS SEEN: nothing was compared" in idle.stderr
    assert tape.read_bytes() == before
    assert model.asked == ["one", "two"] * 2 + ["one", "zwei", "one"]


@pytest.mark.proxy
@pytest.mark.skipif(os.name != "posix", reason="removes a file that is open")
def test_a_live_recording_that_is_incomplete_is_no_drift(tmp_path: Path, environ: dict[str, str]) -> None:
    pytest.importorskip("mitmproxy", reason="the recorder needs mitmproxy (Python 3.12 or later)")
    tape, live = tmp_path / "a.tape", tmp_path / "live.tape"
    agent = f"{shlex.quote(sys.executable)} {shlex.quote(str(tmp_path / 'agent.py'))}"
    assert wiretape(environ, "record", "-o", str(tape), "--", "sh", "-c", f"{agent} one two three").returncode == 0
    words = ["verify", "--keep", str(live), str(tape), "--", "sh", "-c"]
    done = wiretape(environ, *words, f"rm {live}; {agent} one two")
    assert done.returncode == 4, done.stderr
    assert f"{live} IS INCOMPLETE" in done.stderr
    Path(f"{live}.journal").unlink()
    done = wiretape(environ, *words, f"rm {live}; {agent} one two; exit 7")
    assert done.returncode == 7, done.stderr


@pytest.mark.proxy
def test_an_impossible_command_is_an_error_before_anything_runs(
    tmp_path: Path, environ: dict[str, str], model: CountingModel
) -> None:
    pytest.importorskip("mitmproxy", reason="the recorder needs mitmproxy (Python 3.12 or later)")
    program = ["--", sys.executable, str(tmp_path / "agent.py"), "one"]
    done = wiretape(environ, "verify", str(tmp_path / "no.tape"), *program)
    assert (done.returncode, done.stdout) == (2, "")
    assert "no.tape: no such file" in done.stderr
    assert model.asked == []


def test_two_tapes_are_compared_without_running_anything(tmp_path: Path, environ: dict[str, str]) -> None:
    tape = CAPTURES / "subagents.tape"
    other = tmp_path / "later.tape"
    shutil.copy(tape, other)
    done = wiretape(environ, "verify", str(tape), "--against", str(other))
    assert done.returncode == 0, done.stderr
    assert "nothing has changed" in done.stdout
    whole = read_tape(tape)
    write_tape(other, whole.header, whole.exchanges[:-1])
    done = wiretape(environ, "verify", str(tape), "--against", str(other))
    assert (done.returncode, "drifted: 1 vanished" in done.stdout) == (1, True), done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["verify", "a.tape"], "wiretape verify a.tape -- CMD"),
        (["verify", "a.tape", "--against", "b.tape", "--", "true"], "use one of them"),
        (["verify", "no.tape", "--against", "b.tape"], "no.tape: no such file"),
    ],
)
def test_a_missing_argument_is_an_error_of_one_line(words: list[str], said: str, environ: dict[str, str]) -> None:
    done = wiretape(environ, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
