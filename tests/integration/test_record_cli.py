"""The command `wiretape record`: processes, real SDKs, signals, and the resulting tape."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

pytest.importorskip("mitmproxy", reason="the recorder needs mitmproxy (Python 3.12 or later)")

from tests.support import starting
from tests.support.upstream import CHAT_EVENTS, Upstream

from wiretape.model.http import Ended, Exchange, StreamBody, body_bytes
from wiretape.tape.reading.reader import read_tape
from wiretape.wire.registry import decode

pytestmark = [pytest.mark.proxy, pytest.mark.slow]
WIRETAPE = [sys.executable, "-m", "wiretape"]


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream() as running:
        yield running


@pytest.fixture
def environ(state: Path, upstream: Upstream) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.upper().endswith(("_PROXY", "_BASE_URL"))}
    return {
        **kept,
        "XDG_STATE_HOME": str(state),
        "OPENAI_API_KEY": "sk-test-not-a-key",
        "ANTHROPIC_API_KEY": "sk-ant-test-not-a-key",
        "OPENAI_BASE_URL": f"{upstream.url}/v1",
        "ANTHROPIC_BASE_URL": upstream.url,
        "NO_PROXY": "localhost,127.0.0.1",
    }


def record(
    tape: Path, environ: dict[str, str], *arguments: str, code: str | None = None
) -> subprocess.CompletedProcess[str]:
    command = ["record", "-o", str(tape), *arguments]
    if code is not None:
        command += ["--", sys.executable, "-c", textwrap.dedent(code)]
    return starting.run(command, env=environ, cwd=tape.parent)


OPENAI = """
    import openai
    client = openai.OpenAI({0})
    asked = [{{"role": "user", "content": "How is the weather?"}}]
    answer = client.chat.completions.create(model="m", messages=asked)
    print(answer.choices[0].message.content)
    stream = client.chat.completions.create(model="m", messages=asked, stream=True)
    print("".join(chunk.choices[0].delta.content or "" for chunk in stream))
"""
CALL = """
    import http.client, os
    from urllib.parse import urlsplit
    url = urlsplit(os.environ["OPENAI_BASE_URL"])
    connection = http.client.HTTPConnection(url.hostname, url.port)
    connection.request("POST", url.path + "/chat/completions", b'{"model": "m"}')
    print(len(connection.getresponse().read()))
"""
ANTHROPIC = """
    import anthropic
    client = anthropic.Anthropic()
    asked = [{"role": "user", "content": "How is the weather?"}]
    print(client.messages.create(model="m", max_tokens=9, messages=asked).content[0].text)
"""


def test_the_openai_sdk_by_its_base_url(tmp_path: Path, environ: dict[str, str], upstream: Upstream) -> None:
    tape = tmp_path / "a.tape"
    done = record(tape, environ, "--note", "a note", "--provenance", "scripted", code=OPENAI.format(""))
    assert (done.stdout, done.returncode) == ("It is sunny.\nIt is sunny.\n", 0), done.stderr
    read = read_tape(tape)
    calls = decode(read.exchanges)
    assert [(call.format, call.response and call.response.finish) for call in calls] == [("openai.chat", "stop")] * 2
    assert {exchange.request.url for exchange in read.exchanges} == {f"{upstream.url}/v1/chat/completions"}
    assert body_bytes(read.exchanges[1].response.body) == b"".join(CHAT_EVENTS)  # type: ignore[union-attr]
    assert (read.header.note, read.header.provenance) == ("a note", "scripted")
    assert "sk-test-not-a-key" not in tape.read_text()
    assert "2 exchanges on" in done.stderr
    assert done.stderr.count("  scripted-1  ") >= 2, "a line for each call"
    assert not tape.with_name("a.tape.journal").exists()


def test_the_anthropic_sdk_by_its_base_url(tmp_path: Path, environ: dict[str, str]) -> None:
    done = record(tmp_path / "a.tape", environ, code=ANTHROPIC)
    assert (done.stdout, done.returncode) == ("It is raining.\n", 0), done.stderr
    (call,) = decode(read_tape(tmp_path / "a.tape").exchanges)
    assert (call.format, call.usage and call.usage.input) == ("anthropic.messages", 12)


def test_the_openai_sdk_by_https_proxy(tmp_path: Path, environ: dict[str, str]) -> None:
    """Its base URL is in its code: only the proxy variable and the certificates route it to the recorder."""
    from tests.support.certificates import make_authority

    authority, context = make_authority(tmp_path)
    with Upstream(tls=context) as upstream:
        code = OPENAI.format(f'base_url="{upstream.url}/v1"')
        done = record(tmp_path / "a.tape", {**environ, "SSL_CERT_FILE": str(authority)}, code=code)
        url = f"{upstream.url}/v1/chat/completions"
    assert (done.stdout, done.returncode) == ("It is sunny.\nIt is sunny.\n", 0), done.stderr
    assert [exchange.request.url for exchange in read_tape(tmp_path / "a.tape").exchanges] == [url, url]
    assert (
        f"{urlsplit(url).hostname} was reached in TLS, through HTTPS_PROXY: wiretape replay intercepts it"
        in done.stderr
    )


@pytest.mark.parametrize("door", ["$OPENAI_BASE_URL", "{upstream}/v1"], ids=["by route", "by proxy"])
def test_curl_by_both_doors(door: str, tmp_path: Path, environ: dict[str, str], upstream: Upstream) -> None:
    url = door.format(upstream=upstream.url) + "/chat/completions"
    command = ["sh", "-c", f"curl -sS {url} -H 'content-type: application/json' -d '{{\"model\": \"m\"}}'"]
    tape = tmp_path / "a.tape"
    done = record(tape, environ, "--", *command)
    assert "It is sunny." in done.stdout, done.stderr
    (exchange,) = read_tape(tape).exchanges
    assert body_bytes(exchange.request.body) == b'{"model": "m"}'
    assert "proxy-connection" not in exchange.request.headers


@pytest.mark.parametrize("code", [0, 1, 7, 255])
def test_the_exit_code_is_passed_on(code: int, tmp_path: Path, environ: dict[str, str]) -> None:
    assert record(tmp_path / "a.tape", environ, code=f"raise SystemExit({code})").returncode == code


def test_a_tape_without_model_calls_causes_a_warning_with_hints(tmp_path: Path, environ: dict[str, str]) -> None:
    code = """
        import http.client, os
        from urllib.parse import urlsplit
        proxy = urlsplit(os.environ["HTTP_PROXY"])
        connection = http.client.HTTPConnection(proxy.hostname, proxy.port)
        connection.request("GET", "http://models.invalid/v1")
        try:
            connection.getresponse()
        except OSError:
            pass
    """
    done = record(tmp_path / "a.tape", environ, code=code)
    assert done.returncode == 0
    assert "NO MODEL CALL WAS SEEN" in done.stderr
    assert "passed through unrecorded: models.invalid" in done.stderr
    assert "wiretape record --host models.invalid" in done.stderr
    for hint in ("base URL", "HTTPS_PROXY", "NODE_USE_ENV_PROXY", "certificate"):
        assert hint in done.stderr
    assert max(map(len, done.stderr.splitlines())) <= 80


def test_a_recording_of_nothing_leaves_no_tape(tmp_path: Path, environ: dict[str, str]) -> None:
    done = record(tmp_path / "a.tape", environ, code="pass")
    assert "wiretape nothing was recorded; no tape was written\n" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_tape_stays_that_nothing_was_appended_to(tmp_path: Path, environ: dict[str, str]) -> None:
    tape = tmp_path / "a.tape"
    record(tape, environ, code=CALL)
    done = record(tape, environ, "--append", code="pass")
    assert done.returncode == 0
    assert f"wiretape 0 exchanges on {tape}\n" in done.stderr
    assert [exchange.number for exchange in read_tape(tape).exchanges] == [1]


def test_an_empty_tape_is_replaced(tmp_path: Path, environ: dict[str, str]) -> None:
    tape = tmp_path / "a.tape"
    record(tape, environ, code=CALL)
    tape.write_bytes(tape.read_bytes().split(b"\n}\n", 1)[0] + b"\n}\n")  # its header alone
    assert read_tape(tape).exchanges == ()
    assert record(tape, environ, code=CALL).returncode == 0
    assert len(read_tape(tape).exchanges) == 1


def test_a_program_that_failed_before_any_call_is_reported_on_one_line(tmp_path: Path, environ: dict[str, str]) -> None:
    del environ["OPENAI_API_KEY"]
    done = record(tmp_path / "a.tape", environ, code="raise SystemExit(1)")
    name = Path(sys.executable).name
    assert f"wiretape {name} exited with 1 before any call was made (OPENAI_API_KEY is not set)\n" in done.stderr
    assert "NO MODEL CALL WAS SEEN" not in done.stderr
    assert done.stderr.count("\n") == 2


OWN_DEFAULT = """
    import os, urllib.request
    base = os.environ.get("OPENAI_BASE_URL", "{0}/v1")
    request = urllib.request.Request(base + "/chat/completions", b'{{"model": "m"}}', method="POST")
    print(base, len(urllib.request.urlopen(request).read()))
"""


def test_a_default_of_the_programs_own_is_kept_on_request(
    tmp_path: Path, environ: dict[str, str], upstream: Upstream
) -> None:
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
        del environ[name]
    done = record(tmp_path / "a.tape", environ, "--keep-unset", code=OWN_DEFAULT.format(upstream.url))
    assert (done.returncode, done.stdout.split()[0]) == (0, f"{upstream.url}/v1")
    (exchange,) = read_tape(tmp_path / "a.tape").exchanges
    assert exchange.request.url == f"{upstream.url}/v1/chat/completions"


@pytest.mark.parametrize(
    ("words", "right"),
    [
        (["-o", "x.tape"], "wiretape record -o x.tape -- {0} -c pass"),
        (["--output=x.tape"], "wiretape record --output=x.tape -- {0} -c pass"),
    ],
)
def test_an_output_option_after_the_command_gets_a_hint(
    words: list[str], right: str, tmp_path: Path, environ: dict[str, str]
) -> None:
    command = ["record", sys.executable, "-c", "pass"]
    done = starting.run([*command, *words], env=environ, cwd=tmp_path)
    assert "options of wiretape go before the command:\n  " + right.format(sys.executable) in done.stderr
    command[-3:-3] = ["--"]
    done = starting.run([*command, *words], env=environ, cwd=tmp_path)
    assert "go before the command" not in done.stderr


@pytest.mark.parametrize("command", [["no-such-agent"], ["./no-such-agent", "-v"]])
def test_a_program_that_does_not_exist(command: list[str], tmp_path: Path, environ: dict[str, str]) -> None:
    done = record(tmp_path / "a.tape", environ, "--", *command)
    assert done.returncode == 127
    assert done.stderr.startswith(f"wiretape: cannot run {command[0]}: ")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_an_existing_tape_is_not_touched(tmp_path: Path, environ: dict[str, str]) -> None:
    tape = tmp_path / "a.tape"
    record(tape, environ, code=CALL)
    before = tape.read_bytes()
    done = record(tape, environ, code="print('ran')")
    assert (done.returncode, done.stdout) == (2, "")
    assert "exists already" in done.stderr
    assert "--append" in done.stderr
    assert tape.read_bytes() == before


def test_append_continues_and_force_replaces(tmp_path: Path, environ: dict[str, str]) -> None:
    tape = tmp_path / "a.tape"
    record(tape, environ, code=CALL)
    assert record(tape, environ, "--append", code=CALL).returncode == 0
    assert [exchange.number for exchange in read_tape(tape).exchanges] == [1, 2]
    assert record(tape, environ, "--force", code=CALL).returncode == 0
    assert [exchange.number for exchange in read_tape(tape).exchanges] == [1]


def test_force_without_a_new_recording_keeps_the_old_tape(tmp_path: Path, environ: dict[str, str]) -> None:
    tape = tmp_path / "a.tape"
    record(tape, environ, code=CALL)
    before = tape.read_bytes()
    done = record(tape, environ, "--force", code="pass")
    assert done.returncode == 1, done.stderr
    assert f"nothing was recorded: {tape} was not replaced, and is unchanged" in done.stderr
    assert tape.read_bytes() == before
    assert record(tape, environ, "--force", code="raise SystemExit(7)").returncode == 7, "the program's own goes first"
    assert tape.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["a.tape"]


def test_a_file_that_is_not_a_tape_is_not_replaced(tmp_path: Path, environ: dict[str, str]) -> None:
    (tmp_path / "agent.py").write_text("print('precious')\n")
    done = record(tmp_path / "agent.py", environ, "--force", code="pass")
    assert done.returncode == 2
    assert "is not a tape" in done.stderr
    assert [path.read_text() for path in tmp_path.iterdir()] == ["print('precious')\n"]


def test_a_port_in_use(tmp_path: Path, environ: dict[str, str], upstream: Upstream) -> None:
    done = record(tmp_path / "a.tape", environ, "--port", str(upstream.port), code="print('ran')")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"wiretape: port {upstream.port} on 127.0.0.1 is in use")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--upstream", "api.deepseek.com"], "needs a scheme, a host"),
        (["--append", "--force"], "use one of them"),
    ],
)
def test_bad_options_are_one_line(arguments: list[str], said: str, tmp_path: Path, environ: dict[str, str]) -> None:
    done = record(tmp_path / "a.tape", environ, *arguments, code="pass")
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("tape", ["file/a.tape", ".", "/proc/a.tape"])
def test_a_tape_that_cannot_be_written(tape: str, tmp_path: Path, environ: dict[str, str]) -> None:
    (tmp_path / "file").write_text("kept")
    command = ["record", "-o", tape, "--", sys.executable, "-c", "print('ran')"]
    done = starting.run(command, env=environ, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert tape in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "kept"


def test_the_tape_s_directory_is_made(tmp_path: Path, environ: dict[str, str]) -> None:
    (tmp_path / "empty.tape").touch()
    for name in ("captures/a.tape", "empty.tape"):
        command = ["record", "-o", name, "--", sys.executable, "-c", textwrap.dedent(CALL)]
        done = starting.run(command, env=environ, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert len(read_tape(tmp_path / name).exchanges) == 1


def test_the_users_hosts_come_from_pyproject(tmp_path: Path, environ: dict[str, str]) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.wiretape]\nhosts = ["*.invalid"]\n')
    code = """
        import http.client, os
        from urllib.parse import urlsplit
        proxy = urlsplit(os.environ["HTTP_PROXY"])
        connection = http.client.HTTPConnection(proxy.hostname, proxy.port)
        connection.request("GET", "http://models.invalid/v1")
        try:
            connection.getresponse()
        except OSError:
            pass
    """
    done = record(tmp_path / "a.tape", environ, code=code)
    (exchange,) = read_tape(tmp_path / "a.tape").exchanges
    assert (exchange.request.url, exchange.ended) == ("http://models.invalid/v1", Ended.UPSTREAM_UNREACHABLE)
    assert "models.invalid:80 could not be reached" in done.stderr


# Until Ctrl-C, and other signals


class Running:
    """`wiretape record` without a program, until it is told to stop."""

    def __init__(self, tape: Path, environ: dict[str, str], *arguments: str) -> None:
        here, there = os.pipe()
        command = ["record", "-o", str(tape), *arguments]
        self._process = starting.start(command, env=environ, cwd=tape.parent, stdout=there)
        os.close(there)
        self._said = os.fdopen(here)
        self.variables = dict(self._exports())

    def _exports(self) -> Iterator[tuple[str, str]]:
        for line in self._said:
            name, _, value = line.removeprefix("export ").rstrip("\n").partition("=")
            yield name, value.strip("'")
            if name == "DENO_CERT":  # the last one
                return

    @property
    def port(self) -> int:
        return int(self.variables["HTTP_PROXY"].rpartition(":")[2])

    def stream(self, upstream: Upstream, path: str) -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        target = f"/127.0.0.1:{upstream.port}{path}"
        client.sendall(f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n".encode())
        return client

    def end(self, number: signal.Signals) -> int:
        self._process.send_signal(number)
        code = self._process.wait()
        self._said.close()
        return code


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopping_in_the_middle_of_a_stream_keeps_the_received_part(
    number: signal.Signals, tmp_path: Path, environ: dict[str, str], upstream: Upstream
) -> None:
    tape = tmp_path / "a.tape"
    running = Running(tape, environ)
    assert running.variables["OPENAI_BASE_URL"].startswith(f"http://127.0.0.1:{running.port}/127.0.0.1:")
    with running.stream(upstream, "/channel") as client:
        upstream.open_gate()
        got = b""
        while b"data: 1\n\n" not in got:
            got += client.recv(4096)
        assert running.end(number) == 0
    (exchange,) = read_tape(tape).exchanges
    assert exchange.ended is Ended.RECORDER_STOPPED
    assert body_of(exchange) == b"event: message\ndata: 0\n\nevent: message\ndata: 1\n\n"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_reach_the_program_and_the_tape_is_finished(
    number: signal.Signals, code: int, tmp_path: Path, environ: dict[str, str], upstream: Upstream
) -> None:
    tape = tmp_path / "a.tape"
    agent = textwrap.dedent(
        """
        import http.client, os, signal
        from urllib.parse import urlsplit
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        url = urlsplit(os.environ["OPENAI_BASE_URL"])
        connection = http.client.HTTPConnection(url.hostname, url.port)
        connection.request("GET", url.path + "/channel")
        response = connection.getresponse()
        print(response.read(24), flush=True)
        response.read()
        """
    )
    command = [*WIRETAPE, "record", "-o", str(tape), "--", sys.executable, "-c", agent]
    process = subprocess.Popen(
        command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    assert "data: 0" in process.stdout.readline()
    process.send_signal(number)
    _, said = process.communicate(timeout=180)
    assert process.returncode == code, said
    (exchange,) = read_tape(tape).exchanges
    assert exchange.ended is Ended.CLIENT_CLOSED
    assert body_of(exchange).startswith(b"event: message\ndata: 0\n\n")
    assert "1 exchange on" in said


def test_killing_the_recorder_loses_no_finished_call(
    tmp_path: Path, environ: dict[str, str], upstream: Upstream
) -> None:
    """SIGKILL at any moment: every answer that a client had whole is on the tape, whole."""
    chooser = random.Random(7)
    for attempt in range(10):
        tape = tmp_path / f"{attempt}.tape"
        running = Running(tape, environ)
        finished = chooser.randrange(12)
        with chatting(running, upstream, finished) as client:
            client.recv(chooser.randrange(1, 400))
            time.sleep(chooser.uniform(0, 0.01))  # anywhere in what is left of it
            assert running.end(signal.SIGKILL) == -signal.SIGKILL
        read = read_tape(tape)
        whole = [e for e in read.exchanges if e.response is not None and body_of(e) == b"".join(CHAT_EVENTS)]
        assert len(whole) >= finished, (attempt, finished, read.warnings)
        assert [e.number for e in read.exchanges] == list(range(1, len(read.exchanges) + 1))


@contextmanager
def chatting(running: Running, upstream: Upstream, whole: int) -> Iterator[socket.socket]:
    """A client that had so many streamed answers whole, one after the other, and has asked for one more."""
    body = b'{"model":"m","stream":true}'
    head = (
        f"POST /127.0.0.1:{upstream.port}/v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", running.port), timeout=60) as client:
        for _ in range(whole):
            client.sendall(head.encode() + body)
            got = b""
            while not got.endswith(b"0\r\n\r\n"):
                got += client.recv(65536)
        client.sendall(head.encode() + body)
        yield client


def test_a_killed_recording_can_be_continued(tmp_path: Path, environ: dict[str, str], upstream: Upstream) -> None:
    tape = tmp_path / "a.tape"
    running = Running(tape, environ)
    with chatting(running, upstream, 3):
        running.end(signal.SIGKILL)
    before = len(read_tape(tape).exchanges)
    assert before >= 3
    assert record(tape, environ, code=CALL).returncode == 2, "not without --append"
    assert record(tape, environ, "--append", code=CALL).returncode == 0
    after = read_tape(tape)
    assert len(after.exchanges) == before + 1
    assert not tape.with_name("a.tape.journal").exists()


# Times


def test_the_first_token_is_the_first_event_with_content(
    tmp_path: Path, environ: dict[str, str], upstream: Upstream
) -> None:
    """Sends the head immediately, and the first event with content when the gate opens."""
    tape = tmp_path / "a.tape"
    running = Running(tape, environ)
    body = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}'
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", running.port), timeout=60) as client:
        client.sendall(
            f"POST /127.0.0.1:{upstream.port}/slow/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        got = b""
        while not got.endswith(b"0\r\n\r\n"):
            got += client.recv(65536)
            if got.count(b"data: ") == 1:
                time.sleep(0.3)
            if b"data: " in got:
                upstream.open_gate()
    took = (time.monotonic() - began) * 1000
    assert running.end(signal.SIGINT) == 0
    (exchange,) = read_tape(tape).exchanges
    (call,) = decode([exchange])
    assert exchange.response is not None
    assert call.response is not None
    assert call.response.first_token_at is not None
    waited = call.response.first_token_at - exchange.response.headers_at
    assert 250 <= waited <= took
    body_ = exchange.response.body
    assert isinstance(body_, StreamBody)
    assert list(body_.ms) == sorted(body_.ms)
    assert body_.ms[1] - body_.ms[0] >= 250, "events are timed when they come"


# Files in the way of the tape


def test_a_full_disk_never_harms_the_agent_and_is_reported(tmp_path: Path, environ: dict[str, str]) -> None:
    """A file size limit simulates a full disk. The agent inherits it from the recorder and removes it for itself."""
    import resource

    record(tmp_path / "first.tape", environ, code="pass")  # the certificates are in their place already
    tape = tmp_path / "a.tape"
    agent = """
        import http.client, os, resource
        from urllib.parse import urlsplit
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        url = urlsplit(os.environ["OPENAI_BASE_URL"])
        for number in range(6):
            connection = http.client.HTTPConnection(url.hostname, url.port)
            connection.request("POST", url.path + "/chat/completions", b'{"model": "m", "stream": true}')
            assert connection.getresponse().read().endswith(b"data: [DONE]\\n\\n"), number
        print("all answered")
    """
    limit = (6_000, resource.RLIM_INFINITY)
    done = subprocess.run(
        [*WIRETAPE, "record", "-o", str(tape), "--", sys.executable, "-c", textwrap.dedent(agent)],
        env=environ,
        capture_output=True,
        text=True,
        timeout=180,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit),
    )
    assert (done.stdout, done.returncode) == ("all answered\n", 4), done.stderr
    assert "IS INCOMPLETE" in done.stderr
    assert "Traceback" not in done.stderr
    count = len(read_tape(tape).exchanges)
    assert 0 < count <= 6, "what was written before stays readable"
    assert f"wiretape {count} exchange{'' if count == 1 else 's'} on {tape}" in done.stderr


REMOVED = """
    import http.client, os, shutil, sys
    from urllib.parse import urlsplit
    url = urlsplit(os.environ["OPENAI_BASE_URL"])
    def call():
        connection = http.client.HTTPConnection(url.hostname, url.port)
        connection.request("POST", url.path + "/chat/completions", b'{{"model": "m"}}')
        assert connection.getresponse().read()
    call()
    {0}
    call()
    sys.exit({1})
"""


@pytest.mark.parametrize(("code", "expected"), [(0, 4), (7, 7)])
@pytest.mark.parametrize(
    ("removal", "said"),
    [
        ('os.unlink("captures/a.tape")', "2 exchanges on {tape}"),
        ('shutil.rmtree("captures")', "no recorded exchange is on {tape}"),
        ('os.replace("other.tape", "captures/a.tape")', "2 exchanges on {second}"),
    ],
    ids=["tape", "directory", "replaced"],
)
def test_a_tape_that_is_removed_while_it_is_recorded(
    removal: str, said: str, code: int, expected: int, tmp_path: Path, environ: dict[str, str]
) -> None:
    """The summary counts what a reader finds."""
    tape, second = tmp_path / "captures" / "a.tape", tmp_path / "captures" / "a-2.tape"
    (tmp_path / "other.tape").write_text(
        '{"wiretape": 1, "started": "2026-03-01T12:00:00Z", "recorder": "x", "redacted": []}'
    )
    program = textwrap.dedent(REMOVED).format(removal, code)
    done = starting.run(["record", "-o", str(tape), "--", sys.executable, "-c", program], env=environ, cwd=tmp_path)
    assert done.returncode == expected, done.stderr
    assert "another program removed or replaced the file" in done.stderr
    assert "IS INCOMPLETE" in done.stderr
    line = said.format(tape=tape, second=second)
    assert f"wiretape {line}" in done.stderr
    if "exchanges" in line:
        assert len(read_tape(Path(line.split()[-1])).exchanges) == 2


# Standard streams that are closed or broken


@pytest.mark.parametrize(
    ("redirection", "option"),
    [
        ("2>/dev/full", "--stats"),
        ("2>/dev/full", "--tag"),
        ("2>&-", "--verbose"),
        ("2>&-", "--tag"),
        ("2> >(true)", "--stats"),
        ("2> >(true)", "--verbose"),
        ("2>&- >&- <&-", "--stats"),
        (">&-", "--tag"),
        ("> >(true)", "--tag"),
        (">/dev/full", "--tag"),
    ],
)
def test_a_closed_stream_changes_neither_tape_nor_exit_code(
    redirection: str, option: str, tmp_path: Path, environ: dict[str, str]
) -> None:
    (tmp_path / "agent.py").write_text(
        textwrap.dedent(CALL).replace("print", "assert") * 3 + '\nopen("done", "w").close()\nraise SystemExit(7)\n'
    )
    command = f"{' '.join(WIRETAPE)} record -o a.tape {option} -- {sys.executable} agent.py {redirection}"
    done = subprocess.run(["bash", "-c", command], env=environ, cwd=tmp_path, capture_output=True, timeout=180)
    assert done.returncode == 7, done.stderr
    assert (tmp_path / "done").exists()
    tape = read_tape(tmp_path / "a.tape")
    assert not tape.incomplete
    assert [exchange.ended for exchange in tape.exchanges] == [Ended.COMPLETE] * 3


@pytest.mark.parametrize("redirection", [">&-", "> >(true)", ">/dev/full", "2>&-", "2>/dev/full"])
def test_a_recorder_without_a_program_outlives_its_streams(
    redirection: str, tmp_path: Path, environ: dict[str, str], upstream: Upstream
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = f"exec {' '.join(WIRETAPE)} record -o a.tape --port {port} {redirection}"
    process = subprocess.Popen(["bash", "-c", command], env=environ, cwd=tmp_path, stderr=subprocess.DEVNULL)
    try:
        while process.poll() is None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=60) as client:
                target = f"/http:127.0.0.1:{upstream.port}/v1"
                client.sendall(f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
                assert client.recv(12) == b"HTTP/1.1 200"
                break
            time.sleep(0.05)
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    assert [exchange.ended for exchange in read_tape(tmp_path / "a.tape").exchanges] == [Ended.COMPLETE]


def body_of(exchange: Exchange) -> bytes:
    assert exchange.response is not None
    return body_bytes(exchange.response.body)
