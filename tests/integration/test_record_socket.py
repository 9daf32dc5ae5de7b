"""A client of the Responses API over one long WebSocket, through `wiretape record`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mitmproxy", reason="the recorder needs mitmproxy (Python 3.12 or later)")

from tests.support import starting
from tests.support.socket_upstream import socket_upstream
from tests.support.sockets import events, function_call, message

from wiretape.model.http import Ended
from wiretape.tape.reading.reader import read_tape
from wiretape.wire.registry import decode

pytestmark = [pytest.mark.proxy, pytest.mark.slow]
ROOT = Path(__file__).parents[2]
WIRETAPE = [sys.executable, "-m", "wiretape"]
CLIENT = """
    import os, time
    from pathlib import Path
    from tests.support.socket_upstream import Client
    client = Client(os.environ["OPENAI_BASE_URL"])
    client.ask(input=[{"role": "user", "content": "You are a weather agent."}], generate=False)
    first = client.ask(input=[{"role": "user", "content": "How is the weather?"}], previous_response_id="r1")
    while not Path("go").exists():
        time.sleep(0.02)
    result = {"type": "function_call_output", "call_id": first["output"][0]["call_id"], "output": "rain"}
    print(client.ask(input=[result], previous_response_id=first["id"])["output"][0]["content"][0]["text"])
    client.close()
"""


def script(number: int, asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A prewarm, a tool call, an answer."""
    output: list[list[dict[str, Any]]] = [[], [function_call("weather", "c1")], [message("It rains.")]]
    yield from (said for _, said in events(f"r{number}", *output[number - 1]))


def environ(tmp_path: Path, port: int) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.upper().endswith(("_PROXY", "_BASE_URL"))}
    paths = {"XDG_STATE_HOME": str(tmp_path / "state"), "PYTHONPATH": str(ROOT)}
    return {**kept, **paths, "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1"}


def recorded(code: str) -> list[str]:
    return ["record", "-o", "a.tape", "--no-stats", "--", sys.executable, "-c", textwrap.dedent(code)]


def start(tmp_path: Path, port: int, code: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*WIRETAPE, *recorded(code)],
        cwd=tmp_path,
        env=environ(tmp_path, port),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_each_call_is_reported_and_recorded_while_the_socket_is_open(tmp_path: Path) -> None:
    with socket_upstream(script) as port:
        running = start(tmp_path, port, CLIENT)
        assert running.stderr is not None
        told = [line for line in (running.stderr.readline(), running.stderr.readline()) if "x1" in line]
        assert len(told) == 2
        assert "→ weather" in told[1]
        tape = read_tape(tmp_path / "a.tape")
        assert tape.exchanges[0].ended is None
        live = [(call.kind, call.ended, call.response and call.response.finish) for call in decode(tape.exchanges)]
        assert live == [("prewarm", Ended.COMPLETE, "stop"), ("inference", Ended.COMPLETE, "tool_calls")]
        (tmp_path / "go").touch()
        out, err = running.communicate(timeout=180)
    assert (out, running.returncode) == ("It rains.\n", 0), err
    assert err.count("x1 ") == 1, err  # events that were reported already are not reported at the end
    calls = decode(read_tape(tmp_path / "a.tape").exchanges)
    assert [call.part for call in calls] == [1, 2, 3]
    assert [m.role for m in calls[2].request.messages] == ["user", "user", "assistant", "tool"]


def test_stats_and_show_of_a_recorded_socket(tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    with socket_upstream(script) as port:
        done = starting.run(recorded(CLIENT), env=environ(tmp_path, port), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "It rains.\n"), done.stderr
    assert "2 exchanges" not in done.stderr
    report = json.loads(looked(tmp_path, "stats", "a.tape", "--json"))
    assert (report["calls"], report["not_inferences"], report["tool_calls"]) == (3, {"prewarm": 1}, 1)
    (turn,) = report["turns"]
    assert (turn["user"], turn["answer"], turn["calls"]) == ("How is the weather?", "It rains.", 2)
    assert (turn["usage"]["input"], turn["usage"]["cached"], turn["hit_rate"]) == (20, 8, 0.4)
    assert [step["why"] for step in turn["steps"]] == [
        "first call of the turn: the user's message",
        "answers weather from call 2",
    ]
    assert report["side_calls"][0]["why"] == "side call, beside call 2 (prewarm)"
    assert [finding for finding in report["findings"] if finding["kind"] != "unanswered_tool_call"] == []
    raw = looked(tmp_path, "show", "a.tape", "3", "--raw")
    assert '"function_call_output"' in raw
    assert "How is the weather?" not in raw
    assert "How is the weather?" in looked(tmp_path, "show", "a.tape", "x1", "--raw")
    assert "Call 3 of 3 · x1 (its call 3)" in looked(tmp_path, "show", "a.tape", "3")
    assert "prewarm" in looked(tmp_path, "stats", "a.tape")


def looked(tmp_path: Path, *arguments: str) -> str:
    done = starting.run(arguments, env=os.environ, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return done.stdout


BIG = """
    import os
    from pathlib import Path
    from tests.support.socket_upstream import Client
    def resident():
        status = Path(f"/proc/{os.getppid()}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) // 1024
    client = Client(os.environ["OPENAI_BASE_URL"])
    for n in range(2):
        client.ask(input=str(n))
    before = resident()
    for n in range(ROUNDS):
        client.ask(input=str(n))
    print(resident() - before)
    client.close()
"""


def big_script(number: int, asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Three megabytes in small messages, then a short end."""
    first, *_, last = (said for _, said in events(f"r{number}", message("done")))
    yield first
    for n in range(192):
        delta = f"{number}-{n} " + "y" * 16_000
        yield {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": delta}
    yield last


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_sixty_megabytes_through_one_socket_need_bounded_memory(tmp_path: Path) -> None:
    with socket_upstream(big_script) as port:
        code = BIG.replace("ROUNDS", "20")
        done = starting.run(recorded(code), env=environ(tmp_path, port), cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 30, f"grew by {done.stdout} MB"
    assert done.stderr.count(" x1 ") >= 20, done.stderr  # each of the calls, as soon as it was complete
