"""Injected faults and recorded failures with real SDKs: exceptions, retries and answers.

Pauses end when the client leaves, and happen only where a fault requires them.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.replaying import chat, exchange, reply, response, session, stream, taped, user

import wiretape
from wiretape.adapters.http1.server import Connections, HttpConnection, HttpRequest
from wiretape.adapters.replay_runner import ReplayServer, ReplayServerOptions
from wiretape.adapters.replay_server.server import ReplayHandler
from wiretape.errors import UsageError
from wiretape.matching.faults.specs import parse_fault
from wiretape.matching.session import ReplaySession
from wiretape.matching.values import Outcome
from wiretape.model.http import Ended, Exchange, Headers
from wiretape.tape.recording.recorder import Recorder
from wiretape.tape.redaction import Redactor

openai = pytest.importorskip("openai", reason="the openai SDK is not installed")
anthropic = pytest.importorskip("anthropic", reason="the anthropic SDK is not installed")

# The exceptions of SDKs when a stream is cut or stalls: their own, or their HTTP library's.
BROKEN: list[type[Exception]] = [openai.APIConnectionError, anthropic.APIConnectionError, httpx.TransportError]
with suppress(ImportError):
    import httpx2

    BROKEN.append(httpx2.TransportError)

V1 = "https://api.openai.com/v1"
OPENAI = "https://api.openai.com/v1/chat/completions"
ANTHROPIC = "https://api.anthropic.com/v1/messages"
HI = chat(user("hi"))
STREAMED = chat(user("hi"), stream=True)
ASKED = {"model": "claude", "max_tokens": 9, "messages": [user("hi")]}
SOON = "after=10ms"  # so that SDKs do not wait for their own, longer, times
INSTANT = 0.9  # seconds; on a loaded machine, too


@contextmanager
def replaying(*recorded: Exchange, faults: tuple[str, ...] = (), pace: float = 0) -> Iterator[Running]:
    replay = session(*recorded, faults=tuple(map(parse_fault, faults)))
    outcomes: list[Outcome] = []
    ended = threading.Condition()

    def note(outcome: Outcome) -> None:
        with ended:
            outcomes.append(outcome)
            ended.notify_all()

    with ReplayServer(replay, ReplayServerOptions(pace=pace, on_outcome=note)) as running:
        yield Running(replay, running.variables({}), outcomes, ended)


class Running:
    """A replay that is served, and what the server has finished."""

    def __init__(
        self, replay: ReplaySession, variables: dict[str, str], outcomes: list[Outcome], ended: threading.Condition
    ) -> None:
        self.replay = replay
        self.openai = variables["OPENAI_BASE_URL"]
        self.anthropic = variables["ANTHROPIC_BASE_URL"]
        self._outcomes = outcomes
        self._ended = ended

    @property
    def asked(self) -> list[str]:
        """What each request got."""
        report = self.replay.report()
        got = {mishap.request: mishap.fault for mishap in report.injected if mishap.broke}
        got |= {played.request: str(played.answer) for played in report.played}
        return [got[number] for number in sorted(got)]

    def seconds_until_the_server_is_done(self, requests: int) -> float:
        start = time.monotonic()
        with self._ended:
            assert self._ended.wait_for(lambda: len(self._outcomes) >= requests, timeout=10)
        return time.monotonic() - start


def openai_client(running: Running, **options: Any) -> Any:
    return openai.OpenAI(api_key="sk-x", base_url=running.openai, **options)


def anthropic_client(running: Running, **options: Any) -> Any:
    return anthropic.Anthropic(api_key="sk-x", base_url=running.anthropic, **options)


def delta(text: str) -> str:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m-1", "choices": [choice]}
    return f"data: {json.dumps(chunk)}\n\n"


WORDS = stream(*map(delta, ("one ", "two ", "three ", "four")), "data: [DONE]\n\n", ms=[100, 200, 300, 400, 500])


def message(text: str) -> dict[str, Any]:
    base = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "stop_reason": "end_turn"}
    usage = {"input_tokens": 3, "output_tokens": 1}
    return {**base, "content": [{"type": "text", "text": text}], "stop_sequence": None, "usage": usage}


def event(kind: str, **more: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **more})}\n\n"


SPOKEN = stream(
    event("message_start", message={**message(""), "content": [], "stop_reason": None}),
    event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
    event("content_block_delta", index=0, delta={"type": "text_delta", "text": "one "}),
    event("content_block_delta", index=0, delta={"type": "text_delta", "text": "two"}),
    event("content_block_stop", index=0),
    event("message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None}, usage={"output_tokens": 2}),
    event("message_stop"),
)


def ask_openai(client: Any) -> str:
    text: str = client.chat.completions.create(model="m-1", messages=[user("hi")]).choices[0].message.content
    return text


def ask_anthropic(client: Any) -> str:
    text: str = client.messages.create(model="claude", max_tokens=9, messages=[user("hi")]).content[0].text
    return text


def words_of_openai(client: Any, got: list[str]) -> list[str]:
    for chunk in client.chat.completions.create(model="m-1", messages=[user("hi")], stream=True):
        got.append(chunk.choices[0].delta.content)
    return got


def words_of_anthropic(client: Any, got: list[str]) -> list[str]:
    with client.messages.stream(model="claude", max_tokens=9, messages=[user("hi")]) as streamed:
        got.extend(streamed.text_stream)
    return got


# -- errors: retried as SDKs retry, raised as SDKs raise


@pytest.mark.parametrize("status", [408, 429, 500, 503, 529])
def test_openai_retries_an_error_and_gets_the_recorded_answer(status: int) -> None:
    fault = f"{status}@1:{SOON}"
    with replaying(exchange(1, HI, "one", url=OPENAI), faults=(fault,)) as running, openai_client(running) as client:
        assert ask_openai(client) == "one"
        assert running.asked == [fault, "call 1"]


@pytest.mark.parametrize("status", [429, 500, 529])
def test_anthropic_retries_an_error_and_gets_the_recorded_answer(status: int) -> None:
    fault = f"{status}@1:{SOON}"
    recorded = exchange(1, ASKED, message("one"), url=ANTHROPIC)
    with replaying(recorded, faults=(fault,)) as running, anthropic_client(running) as client:
        assert ask_anthropic(client) == "one"
        assert running.asked == [fault, "call 1"]


def test_openai_raises_the_injected_fault_after_its_retries() -> None:
    fault = f"429@1:times=9:{SOON}"
    recorded = exchange(1, HI, "one", url=OPENAI)
    with replaying(recorded, faults=(fault,)) as running, openai_client(running, max_retries=2) as client:
        with pytest.raises(openai.RateLimitError) as seen:
            ask_openai(client)
        assert running.asked == [fault] * 3
        assert seen.value.type == "rate_limit_error"
        assert f"injected by wiretape (--fault {fault})" in str(seen.value)
        assert [named.call for named in running.replay.report().left_over] == [1]


def test_anthropic_raises_the_injected_fault_after_its_retries() -> None:
    fault = f"529@1:times=9:{SOON}"
    recorded = exchange(1, ASKED, message("one"), url=ANTHROPIC)
    with replaying(recorded, faults=(fault,)) as running, anthropic_client(running, max_retries=1) as client:
        with pytest.raises(anthropic.APIStatusError) as seen:
            ask_anthropic(client)
        assert running.asked == [fault] * 2
        assert seen.value.status_code == 529
        assert seen.value.body["error"]["type"] == "overloaded_error"


def test_errors_that_no_retry_mends_are_raised_at_once() -> None:
    recorded = exchange(1, HI, "one", url=OPENAI)
    with replaying(recorded, faults=("401@1",)) as running, openai_client(running) as client:
        with pytest.raises(openai.AuthenticationError):
            ask_openai(client)
        assert running.asked == ["401@1"]


# -- streams that break off


@pytest.mark.parametrize("fault", ["cut@1:event=2", "reset@1:event=2"])
def test_openai_raises_where_a_stream_breaks_off_and_does_not_ask_again(fault: str) -> None:
    recorded = exchange(1, STREAMED, WORDS, url=OPENAI)
    with replaying(recorded, faults=(fault,)) as running, openai_client(running) as client:
        got: list[str] = []
        with pytest.raises(tuple(BROKEN)):
            words_of_openai(client, got)
        assert got == ["one ", "two "]
        assert running.asked == [fault]
        assert words_of_openai(client, []) == ["one ", "two ", "three ", "four"]
        assert running.asked == [fault, "call 1"]


@pytest.mark.parametrize("fault", ["cut@1:event=3", "reset@1:event=3"])
def test_anthropic_raises_where_a_stream_breaks_off_and_does_not_ask_again(fault: str) -> None:
    recorded = exchange(1, {**ASKED, "stream": True}, SPOKEN, url=ANTHROPIC)
    with replaying(recorded, faults=(fault,)) as running, anthropic_client(running) as client:
        got: list[str] = []
        with pytest.raises(tuple(BROKEN)):
            words_of_anthropic(client, got)
        assert got == ["one "]
        assert running.asked == [fault]
        assert words_of_anthropic(client, []) == ["one ", "two"]


def test_a_client_retries_an_answer_that_is_cut() -> None:
    recorded = exchange(1, HI, "one", url=OPENAI)
    with replaying(recorded, faults=("cut@1",)) as running, openai_client(running) as client:
        assert ask_openai(client) == "one"
        assert running.asked == ["cut@1", "call 1"]


def test_a_reset_before_the_answer_is_retried() -> None:
    recorded = exchange(1, HI, "one", url=OPENAI)
    with replaying(recorded, faults=("reset@1",)) as running, openai_client(running) as client:
        assert ask_openai(client) == "one"
        assert running.asked == ["reset@1", "call 1"]


@pytest.mark.parametrize(("spec", "events"), [("reset@1", 0), ("reset@1:event=2", 2)])
def test_a_reset_is_one_of_tcp(spec: str, events: int) -> None:
    with replaying(exchange(1, STREAMED, WORDS, url=OPENAI), faults=(spec,)) as running:
        received: list[bytes] = []
        with raw(running, STREAMED) as connection, pytest.raises(ConnectionResetError):
            receive_all(connection, received)
        assert b"".join(received).count(b"data: ") == events


def test_a_cut_is_no_reset() -> None:
    with (
        replaying(exchange(1, STREAMED, WORDS, url=OPENAI), faults=("cut@1:event=2",)) as running,
        raw(running, STREAMED) as connection,
    ):
        received = b"".join(receive_all(connection, []))
    assert received.count(b"data: ") == 2
    assert not received.endswith(b"0\r\n\r\n")


def receive_all(connection: socket.socket, received: list[bytes]) -> list[bytes]:
    while data := connection.recv(65_536):
        received.append(data)
    return received


def raw(running: Running, body: dict[str, Any]) -> socket.socket:
    """A connection on which a request was sent."""
    url = httpx.URL(running.openai + "/chat/completions")
    connection = socket.create_connection((url.host, url.port or 80), timeout=10)
    data = json.dumps(body).encode()
    head = f"POST {url.raw_path.decode()} HTTP/1.1\r\nhost: {url.host}\r\ncontent-type: application/json\r\n"
    connection.sendall(f"{head}content-length: {len(data)}\r\n\r\n".encode() + data)
    return connection


# -- stalls and pauses


def test_a_client_with_a_time_limit_leaves_a_stall_and_gets_the_answer_then() -> None:
    recorded = exchange(1, HI, "one", url=OPENAI)
    with replaying(recorded, faults=("stall@1",)) as running, openai_client(running, timeout=0.5) as client:
        assert ask_openai(client) == "one"
        assert running.asked == ["stall@1", "call 1"]
        assert running.seconds_until_the_server_is_done(2) < INSTANT


def test_a_stall_within_a_stream_runs_into_the_clients_time_limit() -> None:
    recorded = exchange(1, STREAMED, WORDS, url=OPENAI)
    with replaying(recorded, faults=("stall@1:event=1",)) as running, openai_client(running, timeout=0.5) as client:
        got: list[str] = []
        with pytest.raises(tuple(BROKEN), match=r"(?i)timed out"):
            words_of_openai(client, got)
        assert got == ["one "]


def test_a_bounded_stall_continues() -> None:
    recorded = exchange(1, STREAMED, WORDS, url=OPENAI)
    with replaying(recorded, faults=("stall@1:event=2:for=300ms",)) as running, openai_client(running) as client:
        times = []
        for _ in client.chat.completions.create(model="m-1", messages=[user("hi")], stream=True):
            times.append(time.monotonic())
        assert running.asked == ["call 1"]
    assert [after - before > 0.25 for before, after in pairwise(times)] == [False, True, False]


def test_slowness_needs_no_pace() -> None:
    recorded = exchange(1, STREAMED, WORDS, url=OPENAI)
    with replaying(recorded, faults=("slow@*:x0.5",)) as running, openai_client(running) as client:
        start = time.monotonic()
        assert len(list(client.chat.completions.create(model="m-1", messages=[user("hi")], stream=True))) == 4
        assert time.monotonic() - start > 0.15


@pytest.mark.slow
@pytest.mark.parametrize(("pace", "least", "most"), [(0.5, 0.4, 0.9), (1, 0.9, 1.6), (2, 1.9, 3.0)])
def test_the_pace_scales_the_time_to_the_headers_and_the_stream(pace: float, least: float, most: float) -> None:
    made = response(None, at=600)
    late = type(made)(200, WORDS.headers, 600, WORDS.body)  # 500 ms after its request, and 500 ms long
    with replaying(exchange(1, STREAMED, late, url=OPENAI), pace=pace) as running, httpx.Client() as client:
        start = time.monotonic()
        with client.stream("POST", running.openai + "/chat/completions", json=STREAMED) as answer:
            headers = time.monotonic() - start
            answer.read()
        whole = time.monotonic() - start
    assert least / 2 < headers < most / 2 + 0.3
    assert least < whole < most + 0.3


@pytest.mark.parametrize("begun", [False, True])
def test_a_client_that_hangs_up_ends_the_servers_task_at_once(begun: bool) -> None:
    """Before the headers, and in the middle of a stream; each pause is of minutes."""
    words = stream(*map(delta, ("one", "two")), ms=[0, 600_000])
    late = type(words)(200, words.headers, 100 if begun else 600_000, words.body)
    with replaying(exchange(1, STREAMED, late, url=OPENAI), pace=1) as running:
        with raw(running, STREAMED) as connection:
            if begun:
                assert connection.recv(4096).startswith(b"HTTP/1.1 200")
            else:
                time.sleep(0.2)
        assert running.seconds_until_the_server_is_done(1) < INSTANT


def test_the_end_of_a_replay_does_not_wait_for_a_stall() -> None:
    with replaying(exchange(1, HI, "one", url=OPENAI), faults=("stall@1",)) as running:
        connection = raw(running, HI)
        time.sleep(0.2)
        start = time.monotonic()
    connection.close()
    assert time.monotonic() - start < 5


def test_without_a_pace_nothing_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """No timer is ever set: the only sleeps are those that give other connections their turn."""
    slept: list[float] = []
    waited: list[float | None] = []
    sleep, wait_for = asyncio.sleep, asyncio.wait_for

    async def noted_sleep(delay: float, *rest: Any) -> Any:
        slept.append(delay)
        return await sleep(delay, *rest)

    async def noted_wait_for(one: Any, timeout: float | None) -> Any:
        waited.append(timeout)
        return await wait_for(one, timeout)

    monkeypatch.setattr(asyncio, "sleep", noted_sleep)
    monkeypatch.setattr(asyncio, "wait_for", noted_wait_for)
    frames = stream(*(delta(str(n)) for n in range(300)), ms=range(0, 300_000, 1000))
    written = asyncio.run(answered(ReplayHandler(session(exchange(1, STREAMED, frames, url=OPENAI))), STREAMED))
    assert len([one for one in written if b"data: " in one]) == 300
    assert set(slept) == {0}
    assert waited == []


class Written(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.chunks: list[bytes] = []

    def write(self, data: Any) -> None:
        self.chunks.append(bytes(data))

    def is_closing(self) -> bool:
        return False


async def answered(handler: ReplayHandler, body: dict[str, Any]) -> list[bytes]:
    """The bytes of a request that takes more than one write."""
    connection = HttpConnection(handler, Connections())
    connection.transport = transport = Written()
    json_headers = Headers([("content-type", "application/json")])
    path = "/api.openai.com/v1/chat/completions"
    request = HttpRequest("POST", path, json_headers, json.dumps(body).encode(), "1.1", True, False)
    answering = handler(request, connection)
    assert answering is not None
    await answering
    return transport.chunks


def test_recorded_failures_and_their_retries_replay_in_order_with_the_openai_sdk() -> None:
    limited = response({"error": {"message": "slow down", "type": "rate_limit_error"}}, 429, retry_after_ms="1")
    broken = response({"error": {"message": "oops", "type": "server_error"}}, 500, retry_after_ms="1")
    recorded = [
        exchange(1, HI, None, url=OPENAI, ended=Ended.UPSTREAM_UNREACHABLE),
        exchange(2, HI, limited, url=OPENAI),
        exchange(3, HI, broken, url=OPENAI),
        exchange(4, HI, "one", url=OPENAI),
    ]
    with replaying(*recorded) as running, openai_client(running, max_retries=3) as client:
        assert ask_openai(client) == "one"
        assert running.asked == ["call 1", "call 2", "call 3", "call 4"]
        assert not running.replay.misses


def test_recorded_failures_and_their_retries_replay_in_order_with_the_anthropic_sdk() -> None:
    full = response({"type": "error", "error": {"type": "overloaded_error", "message": "x"}}, 529, retry_after_ms="1")
    recorded = [
        exchange(1, ASKED, None, url=ANTHROPIC, ended=Ended.UPSTREAM_CLOSED),
        exchange(2, ASKED, full, url=ANTHROPIC),
        exchange(3, ASKED, message("one"), url=ANTHROPIC),
    ]
    with replaying(*recorded) as running, anthropic_client(running) as client:
        assert ask_anthropic(client) == "one"
        assert running.asked == ["call 1", "call 2", "call 3"]


def test_a_recorded_cut_stream_and_the_attempt_after_it_replay_in_order() -> None:
    half = stream(delta("one "))
    recorded = [
        exchange(1, STREAMED, half, url=OPENAI, ended=Ended.UPSTREAM_CLOSED),
        exchange(2, STREAMED, WORDS, url=OPENAI),
    ]
    with replaying(*recorded) as running, openai_client(running) as client:
        with pytest.raises(tuple(BROKEN)):
            words_of_openai(client, [])
        assert len(list(client.chat.completions.create(model="m-1", messages=[user("hi")], stream=True))) == 4
        assert running.asked == ["call 1", "call 2"]


def test_faults_take_precedence_over_recorded_failures() -> None:
    limited = response({"error": {"message": "slow down", "type": "rate_limit_error"}}, 429, retry_after_ms="1")
    recorded = [exchange(1, HI, limited, url=OPENAI), exchange(2, HI, "one", url=OPENAI)]
    faults = (f"500@1:{SOON}", f"503@2:{SOON}")
    with replaying(*recorded, faults=faults) as running, openai_client(running, max_retries=5) as client:
        assert ask_openai(client) == "one"
        assert running.asked == [faults[0], "call 1", faults[1], "call 2"]


# -- in process


def test_faults_come_in_process_too() -> None:
    faults = [f"429@1:{SOON}", "cut@2:event=2", "reset@2"]
    tape = taped(exchange(1, HI, "one", url=OPENAI), exchange(2, STREAMED, WORDS, url=OPENAI))
    with wiretape.replay(tape, faults=faults) as replay, openai.OpenAI(api_key="x", base_url=V1) as client:
        assert ask_openai(client) == "one"
        got: list[str] = []
        with pytest.raises(tuple(BROKEN)):
            words_of_openai(client, got)
        assert got == ["one ", "two "]
        assert words_of_openai(client, []) == ["one ", "two ", "three ", "four"]
    assert [mishap.fault for mishap in replay.report.injected] == faults
    assert replay.report.left_over == ()


@pytest.mark.parametrize(("fault", "before"), [("stall@1", []), ("stall@1:event=2", ["one ", "two "])])
def test_an_endless_stall_in_process_is_a_time_out_without_the_waiting(fault: str, before: list[str]) -> None:
    tape = taped(exchange(1, STREAMED, WORDS, url=OPENAI))
    start = time.monotonic()
    with wiretape.replay(tape, faults=[fault]), openai.OpenAI(api_key="x", base_url=V1, max_retries=0) as client:
        got: list[str] = []
        with pytest.raises(tuple(BROKEN), match=r"(?i)timed out"):
            words_of_openai(client, got)
        assert got == before
        assert words_of_openai(client, []) == ["one ", "two ", "three ", "four"]
    assert time.monotonic() - start < 5


def test_an_endless_stall_of_an_async_client_in_process_is_a_time_out() -> None:
    tape = taped(exchange(1, HI, "one", url=OPENAI))

    async def ask() -> str:
        async with openai.AsyncOpenAI(api_key="x", base_url=V1, max_retries=0) as client:
            with pytest.raises(openai.APITimeoutError):
                await client.chat.completions.create(model="m-1", messages=[user("hi")])
            text: str = (
                (await client.chat.completions.create(model="m-1", messages=[user("hi")])).choices[0].message.content
            )
            return text

    with wiretape.replay(tape, faults=["stall@1"]):
        assert asyncio.run(ask()) == "one"


def test_requests_meets_faults_in_process() -> None:
    requests = pytest.importorskip("requests", reason="requests is not installed")
    tape = taped(exchange(1, HI, "one", url=OPENAI))
    with wiretape.replay(tape, faults=["503@1", "stall@1", "reset@1", "cut@1"]) as replay:
        assert requests.post(OPENAI, json=HI).status_code == 503
        for error in (requests.Timeout, requests.ConnectionError, requests.exceptions.ChunkedEncodingError):
            with pytest.raises(error):
                requests.post(OPENAI, json=HI, timeout=30)
        assert requests.post(OPENAI, json=HI).json()["choices"][0]["message"]["content"] == "one"
    assert len(replay.report.injected) == 4


def test_a_wrong_fault_is_an_error_before_the_context_opens() -> None:
    with pytest.raises(UsageError, match="there is no fault 'explode'"):
        wiretape.replay("a.tape", faults=["explode@1"])


# -- as a person asks for them

PROGRAM = """
import httpx, os
for _ in range(2):
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    print(httpx.post(os.environ["DEEPSEEK_BASE_URL"] + "/chat/completions", json=body).status_code)
"""


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    path = tmp_path / "one.tape"
    recorder = Recorder(path, clock=lambda: 0.0, started=datetime(2026, 2, 28, tzinfo=UTC), redactor=Redactor())
    url = "https://api.deepseek.com/chat/completions"
    x = recorder.begin("POST", url, "1.1", [("content-type", "application/json")])
    recorder.request_data(x, json.dumps({"model": "m", "messages": [user("hi")]}).encode())
    recorder.request_end(x)
    recorder.response(x, 200, [("content-type", "application/json")])
    recorder.response_data(x, json.dumps(reply("one")).encode())
    recorder.end(x, Ended.COMPLETE)
    assert not recorder.close().incomplete
    return path


def run_wiretape(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    quiet = {name: value for name, value in os.environ.items() if not name.endswith(("_BASE_URL", "_API_KEY"))}
    command = [sys.executable, "-m", "wiretape", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, encoding="utf-8", env=quiet, timeout=60)


@pytest.mark.slow
def test_the_command_line_injects_faults_and_reports_them(tape: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    faults = ("--fault", "429@1", "--fault", "500@*:times=9")
    done = run_wiretape("replay", tape, *faults, "--report", report, "--", sys.executable, "-c", PROGRAM)
    assert (done.returncode, done.stdout) == (0, "429\n500\n")
    for part in ("injected    429@1 into call 1", "500@*:times=9 into call 1", "  1  injected 429@1"):
        assert part in done.stderr
    told = json.loads(report.read_text())
    assert [(one["request"], one["fault"], one["broke"]) for one in told["injected"]] == [
        (1, "429@1", True),
        (2, "500@*:times=9", True),
    ]


@pytest.mark.parametrize(
    ("spec", "part"),
    [
        ("explode@1", "--fault explode@1: there is no fault 'explode'\n  429@3 "),
        ("429@7", "has no call 7\n  there are: 1\n"),
    ],
)
def test_a_wrong_fault_is_an_error_before_anything_runs(tape: Path, spec: str, part: str) -> None:
    done = run_wiretape("replay", tape, "--fault", spec, "--", sys.executable, "-c", "print('ran')")
    assert (done.returncode, done.stdout) == (2, "")
    assert part in done.stderr
    assert "Traceback" not in done.stderr
