"""A program recorded under the debugger: it gets what the tape contains, and calls that nothing holds flow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("mitmproxy", reason="the recorder needs mitmproxy (Python 3.12 or later)")

from tests.support.counting import CountingModel

from wiretape.model.http import body_bytes
from wiretape.tape.reading.reader import Tape, read_tape
from wiretape.wire.registry import decode

pytestmark = [pytest.mark.proxy, pytest.mark.slow]
# Sends each argument to the model and prints the answer; arguments that begin with `stream` are streamed.
AGENT = """
    import json, os, sys, urllib.error, urllib.request
    for text in sys.argv[1:]:
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": text}],
                           "stream": text.startswith("stream")}).encode()
        request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body,
                                         {"content-type": "application/json", "x-stainless-timeout": "600"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                came = answer.read().decode()
            lines = [json.loads(line[6:]) for line in came.splitlines() if line.startswith("data: {")]
            print("".join(one["choices"][0]["delta"].get("content") or "" for one in lines)
                  if lines else json.loads(came)["choices"][0]["message"]["content"])
        except urllib.error.HTTPError as error:
            print(error.code, json.loads(error.read())["error"]["message"])
        except OSError as error:
            print("nothing came:", type(error).__name__)
"""


@pytest.fixture
def model() -> Iterator[CountingModel]:
    with CountingModel() as running:
        yield running


class Recorded:
    def __init__(self, done: subprocess.CompletedProcess[str], tape: Tape) -> None:
        self.code, self.out, self.err, self.tape = done.returncode, done.stdout, done.stderr, tape

    @property
    def said(self) -> list[str]:
        """The program's own lines."""
        return [line.rstrip() for line in self.out.splitlines() if line.startswith("[")]


def debug(script: str, model: CountingModel, state: Path, directory: Path, *asked: str) -> Recorded:
    program, tape = directory / "agent.py", directory / "new.tape"
    program.write_text(textwrap.dedent(AGENT))
    command = [sys.executable, "-m", "wiretape", "debug", "--live", "-o", str(tape), "--batch", script]
    environ = {**os.environ, "OPENAI_BASE_URL": model.url, "WIRETAPE_STATE": str(state), "XDG_STATE_HOME": str(state)}
    done = subprocess.run(
        [*command, "--", sys.executable, str(program), *asked],
        env={**environ, "NO_PROXY": "", "COLUMNS": "100"},
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert tape.exists(), done.stderr
    return Recorded(done, read_tape(tape))


def test_edited_answers_requests_and_ends_are_recorded(model: CountingModel, state: Path, tmp_path: Path) -> None:
    other = json.dumps({"model": "m", "messages": [{"role": "user", "content": "other words"}]})
    script = (
        "break kind=inference; continue; stepi; say An edited answer.; continue; "
        "inject 429; continue; drop; continue; inject reset; continue; "
        f"edit request {other}; continue; delay 0.05; continue"
    )
    run = debug(script, model, state, tmp_path, "one", "two", "three", "four", "five", "six")
    assert run.code == 0, run.err + run.out
    assert run.said == [
        "[1] An edited answer.",
        "[2] 429 injected by wiretape (in the debugger)",
        "[3] nothing came: RemoteDisconnected",
        "[4] nothing came: RemoteDisconnected",
        "[5] answer 2 to: other words",
        "[6] answer 3 to: six",
    ]
    assert "its client times out after 600 s" in run.out
    assert model.asked == ["one", "other words", "six"]
    statuses = [exchange.response.status if exchange.response else exchange.ended for exchange in run.tape.exchanges]
    assert statuses == [200, 429, "upstream_closed", "upstream_closed", 200, 200]
    calls = decode(run.tape.exchanges)
    assert "An edited answer." in str(calls[0].response)
    assert "other words" in str(calls[4].request)


def test_an_edited_stream_stays_a_stream_and_other_calls_flow(
    model: CountingModel, state: Path, tmp_path: Path
) -> None:
    script = "tbreak answer~'to: stream one'; continue; say An edited answer.; continue"
    run = debug(script, model, state, tmp_path, "zero", "stream one", "stream two")
    assert run.code == 0, run.err + run.out
    assert run.said == ["[1] answer 1 to: zero", "[2] An edited answer.", "[3] answer 3 to: stream two"]
    edited, flowed = run.tape.exchanges[1:]
    assert edited.response is not None
    assert edited.response.headers["content-type"] == "text/event-stream"
    assert b"data: [DONE]" in body_bytes(edited.response.body)
    assert flowed.response is not None
    assert "4 exchanges" not in run.err
    assert "3 exchanges on" in run.err
