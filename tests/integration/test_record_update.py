"""`wiretape record --update`: answers that still match stay unchanged; drifted requests are sent live and replaced."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("mitmproxy", reason="the recorder needs mitmproxy (Python 3.12 or later)")

from tests.support import starting
from tests.support.certificates import make_authority
from tests.support.counting import CountingModel
from tests.support.upstream import Upstream

from wiretape.model.call import Text
from wiretape.model.http import Exchange, body_bytes
from wiretape.tape.reading.reader import read_tape
from wiretape.wire.registry import decode

pytestmark = [pytest.mark.proxy, pytest.mark.slow]
# Sends each argument as its own conversation, in order; the last argument may be an exit code.
AGENT = """
    import http.client, json, os, sys
    from urllib.parse import urlsplit
    url = urlsplit(os.environ["OPENAI_BASE_URL"])
    system = "You are careful. " * 30 + os.environ.get("CLOCK", "")
    for text in sys.argv[1:]:
        connection = http.client.HTTPConnection(url.hostname, url.port, timeout=30)
        if text.startswith("page"):
            connection.request("GET", url.path + "/" + text)
            connection.getresponse().read()
            connection.close()
            continue
        stream = text.startswith("stream")
        asked = [{"role": "system", "content": system}, {"role": "user", "content": text}]
        body = json.dumps({"model": "m", "messages": asked, "stream": stream})
        connection.request("POST", url.path + "/chat/completions", body, {"content-type": "application/json",
            "user-agent": "agent/" + os.environ.get("VERSION", "1")})
        answer = connection.getresponse().read().decode()
        connection.close()
        print("".join(json.loads(line[6:])["choices"][0]["delta"].get("content", "") for line in answer.split("\\n")
            if line.startswith("data: {")) if stream else answer if "error" in answer else
            json.loads(answer)["choices"][0]["message"]["content"])
    sys.exit(int(os.environ.get("CODE", "0")))
"""


@pytest.fixture
def model() -> Iterator[CountingModel]:
    with CountingModel() as running:
        yield running


class Agent:
    """Runs the program under `wiretape record`."""

    def __init__(self, directory: Path, environ: dict[str, str]) -> None:
        self.tape = directory / "a.tape"
        self._program = directory / "agent.py"
        self._program.write_text(textwrap.dedent(AGENT))
        self._environ = environ

    def record(self, *asked: str) -> subprocess.CompletedProcess[str]:
        return self._run(["-o", str(self.tape)], asked)

    def update(self, *asked: str, options: tuple[str, ...] = (), **more: str) -> subprocess.CompletedProcess[str]:
        return self._run(["--update", str(self.tape), *options], asked, **more)

    def _run(self, options: list[str], asked: tuple[str, ...], **more: str) -> subprocess.CompletedProcess[str]:
        command = ["record", *options, "--", sys.executable, str(self._program), *asked]
        return starting.run(command, env={**self._environ, **more}, cwd=self.tape.parent)

    @property
    def answers(self) -> list[str]:
        return [_said(exchange) for exchange in read_tape(self.tape).exchanges]

    @property
    def documents(self) -> list[str]:
        return self.tape.read_text().split("\n\n")

    @property
    def files(self) -> list[str]:
        return sorted(path.name for path in self.tape.parent.iterdir() if path.name != "agent.py")


def _said(exchange: Exchange) -> str:
    (call,) = decode([exchange])
    assert call.response is not None
    return "".join(block.text for one in call.response.messages for block in one.blocks if isinstance(block, Text))


@pytest.fixture
def agent(tmp_path: Path, state: Path, model: CountingModel) -> Agent:
    kept = {name: value for name, value in os.environ.items() if not name.upper().endswith(("_PROXY", "_BASE_URL"))}
    environ = {
        **kept,
        "XDG_STATE_HOME": str(state),
        "OPENAI_API_KEY": "sk-test-not-a-key",
        "OPENAI_BASE_URL": model.url,
        "NO_PROXY": "localhost,127.0.0.1",
    }
    return Agent(tmp_path, environ)


def test_only_drifted_calls_are_sent_live_and_the_rest_stays_byte_for_byte(agent: Agent, model: CountingModel) -> None:
    agent.record("one", "stream two", "three")
    before = agent.documents
    done = agent.update("one", "stream zwei", "three", VERSION="2")
    assert (done.returncode, done.stdout.split("\n")[:3]) == (
        0,
        ["answer 1 to: one", "answer 4 to: stream zwei ", "answer 3 to: three"],
    ), done.stderr
    assert model.asked == ["one", "stream two", "three", "stream zwei"]
    assert agent.answers == ["answer 1 to: one", "answer 4 to: stream zwei ", "answer 3 to: three"]
    tape = read_tape(agent.tape)
    assert [exchange.number for exchange in tape.exchanges] == [1, 2, 3]
    assert tape.header.client == {"user-agent": ["agent/1", "agent/2"]}
    after = agent.documents
    assert [after[1], after[2]] == [before[1], before[2]], "the first exchange, byte for byte"
    assert agent.files == ["a.tape"]
    assert "go LIVE to real models" in done.stderr
    assert "kept        2 calls (2 exact)" in done.stderr
    assert "called live 1 exchange, recorded anew" in done.stderr
    assert "differs from call 2 at messages[1].content" in " ".join(done.stderr.split())
    assert "dropped     call 2: not asked for any more" in done.stderr
    assert f"updated {agent.tape}" in done.stderr.replace("\n", "")
    model.refused = {"drei"}
    refused = agent.update("one", "stream zwei", "drei")
    said = " ".join(refused.stderr.split())
    assert "the model did not answer x1 (error 429 rate_limit):" in said
    assert "(--force writes it anyway)" in said
    assert (refused.returncode, agent.documents) == (1, after)


def test_a_clock_in_the_prompt_is_drift_only_at_stricter_tiers(agent: Agent, model: CountingModel) -> None:
    agent.record("one")
    before = agent.tape.read_bytes()
    done = agent.update("one", CLOCK="2026-11-30 02:12:05")
    assert agent.tape.read_bytes() != before, f"the recorded prompt has no clock: {done.stderr}"
    before = agent.tape.read_bytes()
    done = agent.update("one", CLOCK="2026-12-01 09:00:00")
    assert agent.tape.read_bytes() == before
    assert "still matches: it is unchanged" in " ".join(done.stderr.split())
    assert model.asked == ["one", "one"]
    agent.update("one", options=("--tier", "exact"), CLOCK="2026-12-01 09:00:00")
    assert model.asked == ["one", "one", "one"]


def test_nothing_is_sent_live_if_everything_matches(agent: Agent, model: CountingModel) -> None:
    agent.record("one", "two")
    before = agent.tape.read_bytes()
    done = agent.update("two", "one")
    assert (done.returncode, agent.tape.read_bytes()) == (0, before), done.stderr
    assert model.asked == ["one", "two"]


def test_new_calls_are_added_and_unused_calls_are_dropped(agent: Agent, model: CountingModel) -> None:
    agent.record("one", "two")
    done = agent.update("two", "three", "two")
    assert agent.answers == ["answer 2 to: two", "answer 3 to: three", "answer 4 to: two"], done.stderr
    assert [exchange.number for exchange in read_tape(agent.tape).exchanges] == [2, 3, 4]
    assert "asked once more than it was recorded" in done.stderr


def test_a_failing_program_leaves_the_tape_unchanged_unless_forced(agent: Agent) -> None:
    agent.record("one")
    before = agent.tape.read_bytes()
    done = agent.update("uno", CODE="7")
    assert (done.returncode, agent.tape.read_bytes(), agent.files) == (7, before, ["a.tape"])
    assert "the program exited with 7" in " ".join(done.stderr.split())
    done = agent.update("uno", options=("--force",), CODE="7")
    assert (done.returncode, agent.answers) == (7, ["answer 3 to: uno"]), done.stderr


def test_a_program_without_requests_leaves_the_tape_unchanged(agent: Agent) -> None:
    agent.record("one")
    before = agent.tape.read_bytes()
    done = agent.update()
    assert (done.returncode, agent.tape.read_bytes(), agent.files) == (1, before, ["a.tape"])
    assert "the program made no request" in done.stderr


def test_other_exchanges_do_not_make_a_tape_drift(agent: Agent, model: CountingModel) -> None:
    agent.record("one", "page/1")
    before = agent.tape.read_bytes()
    done = agent.update("one", "page/2")
    assert (done.returncode, agent.tape.read_bytes()) == (0, before), done.stderr
    assert "called live 1 exchange, and not kept" in done.stderr
    assert "every call on" in done.stderr
    agent.update("one", "page/3", options=("--force",))
    assert [exchange.request.url.rpartition("/")[2] for exchange in read_tape(agent.tape).exchanges] == [
        *("completions", "3")
    ]


def test_the_new_tape_may_go_elsewhere(agent: Agent) -> None:
    agent.record("one", "two")
    before = agent.tape.read_bytes()
    other = agent.tape.with_name("b.tape")
    done = agent.update("one", "zwei", options=("-o", str(other)))
    assert done.returncode == 0, done.stderr
    assert agent.tape.read_bytes() == before
    assert [_said(x) for x in read_tape(other).exchanges] == ["answer 1 to: one", "answer 3 to: zwei"]
    assert agent.files == ["a.tape", "b.tape"]
    done = agent.update("one", options=("-o", str(other)))
    assert done.returncode == 2
    assert "--force replaces it" in done.stderr


def test_an_updated_tape_replays(agent: Agent, model: CountingModel) -> None:
    agent.record("one", "two")
    agent.update("one", "zwei")
    asked = list(model.asked)
    command = ["replay", str(agent.tape), "--", sys.executable, str(agent._program), "one", "zwei"]
    done = starting.run(command, env=agent._environ, cwd=agent.tape.parent)
    assert (done.returncode, done.stdout) == (0, "answer 1 to: one\nanswer 3 to: zwei\n"), done.stderr
    assert model.asked == asked


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--update", "no.tape", "--", "true"], "no.tape: no such file"),
        (["--update", "no.tape"], "--update needs the program"),
        (["--update", "no.tape", "--append", "--", "true"], "use one of them"),
    ],
)
def test_an_impossible_command_is_an_error_of_one_line(options: list[str], said: str, agent: Agent) -> None:
    done = starting.run(["record", *options], env=agent._environ, cwd=agent.tape.parent)
    assert done.returncode == 2
    assert said in done.stderr
    assert agent.files == []


def test_through_tls_only_drifted_calls_reach_the_upstream(tmp_path: Path, agent: Agent) -> None:
    """An SDK whose base URL is in its code: only the proxy routes it to the recorder. HTTP/1 and TLS."""
    authority, context = make_authority(tmp_path)
    environ = {**agent._environ, "SSL_CERT_FILE": str(authority)}
    with Upstream(tls=context) as upstream:
        code = textwrap.dedent(f"""
            import sys, openai
            client = openai.OpenAI(base_url="{upstream.url}/v1", max_retries=0)
            for text in sys.argv[1:]:
                asked = [dict(role="user", content=text)]
                stream = client.chat.completions.create(model="m", messages=asked, stream=True)
                print("".join(chunk.choices[0].delta.content or "" for chunk in stream))
        """)
        tape = tmp_path / "tls.tape"
        program = ["--", sys.executable, "-c", code]
        for options in (["-o", str(tape)], ["--update", str(tape)]):
            asked = ["one", "two"] if options[0] == "-o" else ["one", "three"]
            done = starting.run(["record", *options, *program, *asked], env=environ, cwd=tmp_path)
            assert (done.returncode, done.stdout) == (0, "It is sunny.\n" * 2), done.stderr
    assert [b"one" in seen.body for seen in upstream.seen] == [True, False, False]
    exchanges = read_tape(tape).exchanges
    assert [b"three" in body_bytes(exchange.request.body) for exchange in exchanges] == [False, True]
    client = read_tape(tape).header.client
    assert client is not None
    assert str(client["user-agent"]).startswith("OpenAI/Python")
