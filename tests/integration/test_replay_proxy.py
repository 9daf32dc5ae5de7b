"""A replay that intercepts TLS: programs that insist on their provider's address are answered from the tape.

HTTP/1.1, HTTP/2 and WebSockets inside tunnels; pauses, faults, misses and strays as at the replay server.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

pytest.importorskip("mitmproxy", reason="opening TLS needs mitmproxy (Python 3.12 or later)")

from tests.support.certificates import make_authority
from tests.support.replaying import CHAT, chat, exchange, response, session, stream, user
from tests.support.sockets import create, events, message
from tests.support.sockets import socket as recorded_socket
from tests.support.tls_replaying import H2, PATIENCE_S, client, opening, tunnel
from tests.support.upstream import CHAT_ANSWER, Upstream

from wiretape.matching.faults.specs import parse_fault
from wiretape.matching.values import Answer, Miss, Outcome
from wiretape.model.http import Ended
from wiretape.tape.reading.reader import read_tape
from wiretape.tape.recording.recorder import Recorder
from wiretape.tape.redaction import Redactor

pytestmark = pytest.mark.proxy

HOST = "api.example.com"
PATH = "/v1/chat/completions"
HI, STREAMED = chat(user("hi")), chat(user("hi"), stream=True)
FRAMES = [f"data: {n}\n\n" for n in range(5)]


def text(answer: httpx.Response) -> Any:
    return answer.json()["choices"][0]["message"]["content"]


def test_calls_in_tls_are_answered_from_the_tape(state: Path) -> None:
    seen: list[Outcome] = []
    replay = session(exchange(1, HI, "one"), exchange(2, chat(user("more")), "two"))
    with opening(replay, state, on_outcome=seen.append) as (running, trust, told), client(running, trust) as asking:
        assert [text(asking.post(CHAT, json=chat(user(said)))) for said in ("more", "hi")] == ["two", "one"]
    report = replay.report()
    assert [(played.answer.exchange, played.tier) for played in report.played] == [(2, "exact"), (1, "exact")]
    assert (report.missed, report.strayed, report.left_over, told) == ((), (), (), [])
    assert [type(outcome) for outcome in seen] == [Answer, Answer]


def test_two_identical_requests_in_tls_get_both_answers_in_order_and_a_third_is_a_miss(state: Path) -> None:
    replay = session(exchange(1, HI, "first"), exchange(2, HI, "second"))
    with opening(replay, state) as (running, trust, _), client(running, trust) as asking:
        assert [text(asking.post(CHAT, json=HI)) for _ in range(2)] == ["first", "second"]
        assert asking.post(CHAT, json=HI).status_code == 400
    assert [one.reason for one in replay.report().missed] == ["already played"]


def test_a_miss_and_a_stray_in_tls_equal_those_at_the_server(state: Path) -> None:
    replay = session(exchange(1, HI, "one"))
    with opening(replay, state) as (running, trust, _), client(running, trust) as asking:
        missed = asking.post(CHAT, json=chat(user("other")))
        strayed = asking.get("https://telemetry.example.org/collect?x=1")
    assert (missed.status_code, missed.headers["x-should-retry"]) == (400, "false")
    assert missed.json()["error"]["code"] == "wiretape_miss"
    assert "messages[0].content" in missed.json()["error"]["message"]
    assert strayed.status_code == 404
    assert [one.reason for one in replay.report().missed] == ["never recorded"]
    assert [one.what for one in replay.report().strayed] == ["GET telemetry.example.org/collect"]


def test_a_stream_is_sent_event_by_event_at_its_recorded_pace(state: Path) -> None:
    replay = session(exchange(1, STREAMED, stream(*FRAMES, ms=[0, 200, 400, 600, 800])))
    with (
        opening(replay, state, pace=1) as (running, trust, _),
        client(running, trust) as asking,
        asking.stream("POST", CHAT, json=STREAMED) as answer,
    ):
        assert answer.headers["content-type"] == "text/event-stream"
        came = [(chunk, time.monotonic()) for chunk in answer.iter_raw()]
    assert b"".join(chunk for chunk, _ in came) == "".join(FRAMES).encode()
    assert len(came) == len(FRAMES)
    assert came[-1][1] - came[0][1] >= 0.7


@pytest.mark.slow
def test_http_2_serves_many_concurrent_streams_independently(state: Path) -> None:
    """A dozen calls on one connection, none of which ends before all have begun."""
    from h2 import events as h2

    bodies = [chat(user(f"agent {n}")) for n in range(12)]
    ms = [0, 2000, 2000, 2000, 2000]
    replay = session(*(exchange(n, body, stream(*FRAMES, ms=ms)) for n, body in enumerate(bodies, 1)))
    with opening(replay, state, pace=1) as (running, trust, _), H2(running, trust, HOST) as connection:
        assert connection.protocol == "h2"
        waiting = {connection.start(PATH, orjson.dumps(body)) for body in bodies}
        got: dict[int, bytes] = dict.fromkeys(waiting, b"")
        order: list[str] = []
        for event in connection.events():
            if isinstance(event, h2.DataReceived):
                got[event.stream_id] += event.data
                order.append("first" if got[event.stream_id] == FRAMES[0].encode() else "more")
            if isinstance(event, h2.StreamEnded):
                waiting.discard(event.stream_id)
                order.append("end")
            if not waiting:
                break
    assert set(got.values()) == {"".join(FRAMES).encode()}
    assert order[: len(bodies)] == ["first"] * len(bodies)
    assert [played.tier for played in replay.report().played] == ["exact"] * len(bodies)


def test_a_cut_stream_is_reset_over_http_2_and_the_others_continue(state: Path) -> None:
    from h2 import events as h2

    broken = exchange(1, STREAMED, stream(*FRAMES), ended=Ended.UPSTREAM_CLOSED)
    replay = session(broken, exchange(2, HI, "one"))
    with opening(replay, state) as (running, trust, _), H2(running, trust, HOST) as connection:
        first = connection.start(PATH, orjson.dumps(STREAMED))
        seen = {type(event) for event in _until(connection, first, (h2.StreamReset, h2.StreamEnded))}
        assert h2.StreamReset in seen
        second = connection.start(PATH, orjson.dumps(HI))
        data = [e.data for e in _until(connection, second, (h2.StreamEnded,)) if isinstance(e, h2.DataReceived)]
    assert orjson.loads(b"".join(data))["choices"][0]["message"]["content"] == "one"


def _until(connection: H2, number: int, kinds: tuple[type, ...]) -> list[Any]:
    seen = []
    for event in connection.events():
        if getattr(event, "stream_id", None) == number:
            seen.append(event)
            if isinstance(event, kinds):
                break
    return seen


def dialled(running: Any, trust: ssl.SSLContext) -> Any:
    """A WebSocket inside a tunnel. The first has to wait until mitmproxy is loaded: long, where much else runs."""
    from websockets.sync.client import connect

    proxy = f"http://127.0.0.1:{running.proxy_port}"
    # This client reads on one thread and writes on another, and not every Python's ssl keeps these apart: with TLS 1.3,
    # whose tickets come while the handshake is sent, that was lost now and then, and the test waited for ever.
    trust.maximum_version = ssl.TLSVersion.TLSv1_2
    return connect(f"wss://{HOST}/v1/responses", proxy=proxy, ssl=trust, open_timeout=PATIENCE_S)


def test_a_websocket_in_tls_is_played_with_its_close(state: Path) -> None:
    pytest.importorskip("websockets", reason="websockets is not installed")
    from websockets.exceptions import ConnectionClosed

    from wiretape.model.http import Close

    talk = [create("hi"), *events("r1", message("one"))]
    replay = session(recorded_socket(talk, close=Close(1013, "later", "server")))
    with opening(replay, state) as (running, trust, _), dialled(running, trust) as talking:
        talking.send(json.dumps(talk[0][1]))
        assert [json.loads(talking.recv(PATIENCE_S)) for _ in talk[1:]] == [said for _, said in talk[1:]]
        with pytest.raises(ConnectionClosed) as closed:
            talking.recv(PATIENCE_S)
    assert closed.value.rcvd is not None
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1013, "later")
    assert [played.tier for played in replay.report().played] == ["exact"]


def test_a_websocket_miss_in_tls_is_reported_immediately(state: Path) -> None:
    pytest.importorskip("websockets", reason="websockets is not installed")
    from websockets.exceptions import ConnectionClosed

    replay = session(recorded_socket([create("hi"), *events("r1", message("one"))]))
    with opening(replay, state) as (running, trust, _), dialled(running, trust) as talking:
        talking.send(json.dumps(create("other")[1]))
        assert json.loads(talking.recv(PATIENCE_S))["error"]["code"] == "wiretape_miss"
        with pytest.raises(ConnectionClosed) as closed:
            talking.recv(PATIENCE_S)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1008
    assert [one.reason for one in replay.report().missed] == ["diverged"]


@pytest.mark.parametrize("fault", ["cut@1:event=2", "reset@1:event=2"])
def test_a_websocket_in_tls_breaks_off_and_the_next_one_gets_the_answer(state: Path, fault: str) -> None:
    pytest.importorskip("websockets", reason="websockets is not installed")
    from websockets.exceptions import ConnectionClosedError

    said = [create("hi"), *events("r1", message("one"))]
    replay = session(recorded_socket(said), faults=(parse_fault(fault),))
    with opening(replay, state) as (running, trust, _):
        for count, ends in ((2, True), (6, False)):
            with dialled(running, trust) as talking:
                talking.send(json.dumps(said[0][1]))
                assert [json.loads(talking.recv(PATIENCE_S)) for _ in range(count)] == [s for _, s in said[1:]][:count]
                if ends:
                    with pytest.raises(ConnectionClosedError) as closed:
                        talking.recv(PATIENCE_S)
                    assert closed.value.rcvd is None
    assert [mishap.fault for mishap in replay.report().injected] == [fault]
    assert replay.report().left_over == ()


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("cut@1:event=2", httpx.RemoteProtocolError),
        ("reset@1:event=2", httpx.TransportError),  # older Pythons' ssl tells a reset as an end
        ("reset@1", httpx.TransportError),
    ],
)
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # mitmproxy may drop a connection that both sides reset
def test_faults_equal_those_at_the_server(state: Path, fault: str, error: type[Exception]) -> None:
    replay = session(exchange(1, STREAMED, stream(*FRAMES)), faults=(parse_fault(fault),))
    with opening(replay, state) as (running, trust, _):
        got: list[bytes] = []
        with client(running, trust) as asking, pytest.raises(error):
            _read(asking, got)
        assert b"".join(got) == ("".join(FRAMES[:2]).encode() if "event" in fault else b"")
        with client(running, trust) as asking:
            assert asking.post(CHAT, json=STREAMED).content == "".join(FRAMES).encode()


def test_a_reset_reaches_the_client_s_own_socket(state: Path) -> None:
    replay = session(exchange(1, STREAMED, stream(*FRAMES)), faults=(parse_fault("reset@1:event=2"),))
    with opening(replay, state) as (running, trust, _), tunnel(running, HOST) as raw:
        coming, going = ssl.MemoryBIO(), ssl.MemoryBIO()
        spoken = trust.wrap_bio(coming, going, server_hostname=HOST)
        body = orjson.dumps(STREAMED)
        head = b"POST %b HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % (PATH.encode(), len(body))
        _moved(raw, coming, going, spoken.do_handshake)
        _moved(raw, coming, going, lambda: spoken.write(head + body))
        got: list[bytes] = []
        with pytest.raises(ConnectionResetError):
            got.extend(iter(lambda: _moved(raw, coming, going, lambda: spoken.read(65536)), b""))
    assert b"".join(got).count(b"data: ") == 2


def _moved(raw: socket.socket, coming: ssl.MemoryBIO, going: ssl.MemoryBIO, step: Callable[[], Any]) -> Any:
    """One step of TLS by hand: Python's own sockets do not always tell a reset from an end."""
    while True:
        try:
            return step()
        except ssl.SSLWantReadError:
            raw.sendall(going.read())
            data = raw.recv(65536)
            if data:
                coming.write(data)
            else:
                coming.write_eof()
        finally:
            if going.pending:
                raw.sendall(going.read())


def _read(asking: httpx.Client, got: list[bytes]) -> None:
    with asking.stream("POST", CHAT, json=STREAMED) as answer:
        got.extend(answer.iter_raw())


def test_an_error_and_an_endless_stall_are_too(state: Path) -> None:
    faults = tuple(map(parse_fault, ("529@1", "stall@1:event=1")))
    replay = session(exchange(1, STREAMED, stream(*FRAMES)), faults=faults)
    with opening(replay, state) as (running, trust, _), client(running, trust) as asking:
        refused = asking.post(CHAT, json=STREAMED)
        assert (refused.status_code, refused.headers["retry-after"]) == (529, "1")
        with pytest.raises(httpx.ReadTimeout):
            asking.post(CHAT, json=STREAMED, timeout=1)
        assert asking.post(CHAT, json=STREAMED).content == "".join(FRAMES).encode()


def test_an_unanswered_recorded_request_gets_no_other_answer(state: Path) -> None:
    """Not by a page of the proxy's own: the connection ends."""
    unreachable = exchange(1, HI, None, ended=Ended.UPSTREAM_UNREACHABLE)
    replay = session(unreachable)
    with (
        opening(replay, state) as (running, trust, _),
        client(running, trust) as asking,
        pytest.raises(httpx.TransportError),
    ):
        asking.post(CHAT, json=HI)
    assert replay.report().left_over == ()


def test_large_requests_and_answers_pass_whole(state: Path) -> None:
    big = "语" * 3_000_000
    replay = session(exchange(1, chat(user(big)), response({"text": big})))
    with opening(replay, state) as (running, trust, _), client(running, trust) as asking:
        assert asking.post(CHAT, json=chat(user(big))).json() == {"text": big}


def test_an_sdk_raises_a_miss_in_tls_without_a_retry(state: Path) -> None:
    openai = pytest.importorskip("openai", reason="the openai SDK is not installed")
    replay = session(exchange(1, HI, "one"))
    with opening(replay, state) as (running, trust, _):
        asking = openai.DefaultHttpxClient(
            proxy=f"http://127.0.0.1:{running.proxy_port}", verify=trust, trust_env=False
        )
        with (
            openai.OpenAI(base_url=f"https://{HOST}/v1", api_key="sk-test", http_client=asking) as sdk,
            pytest.raises(openai.BadRequestError, match="the nearest, call 1, differs"),
        ):
            sdk.chat.completions.create(model="m-1", messages=[user("other")])
    assert [one.reason for one in replay.report().missed] == ["never recorded"]


def test_recorded_pauses_in_tls_end_with_the_client(state: Path) -> None:
    began = time.monotonic()
    replay = session(exchange(1, STREAMED, stream(*FRAMES, ms=[0, 3_600_000, 7_200_000, 7_200_000, 7_200_000])))
    with (
        opening(replay, state, pace=1) as (running, trust, _),
        client(running, trust) as asking,
        asking.stream("POST", CHAT, json=STREAMED) as answer,
    ):
        assert next(answer.iter_raw()) == FRAMES[0].encode()
    assert time.monotonic() - began < PATIENCE_S
    assert [played.tier for played in replay.report().played] == ["exact"]


def test_the_tls_of_an_allowed_host_is_not_intercepted(state: Path, tmp_path: Path) -> None:
    """The client verifies the host's own certificate, so no proxy intercepts the connection."""
    ca, context = make_authority(tmp_path)
    replay = session(exchange(1, HI, "one"))
    with (
        Upstream(tls=context) as upstream,
        opening(replay, state, let_through=["localhost"]) as (running, _, _told),
        client(running, ssl.create_default_context(cafile=str(ca))) as asking,
    ):
        assert asking.post(f"https://localhost:{upstream.port}{PATH}", json={}).json() == CHAT_ANSWER
    assert replay.report().passed == {f"localhost:{upstream.port}": 1}


def test_by_default_only_hosts_of_models_are_intercepted(state: Path) -> None:
    replay = session(exchange(1, HI, "one"))
    with opening(replay, state, everything=False) as (running, trust, _), client(running, trust) as asking:
        with pytest.raises(httpx.ProxyError, match="403"):
            asking.get("https://telemetry.example.org/collect")
        assert text(asking.post("https://api.openai.com/v1/chat/completions", json=HI)) == "one"
        assert asking.post(CHAT, json=HI).status_code == 400
    assert [one.what for one in replay.report().strayed] == ["CONNECT telemetry.example.org:443"]
    assert [one.reason for one in replay.report().missed] == ["already played"]


def test_a_client_that_rejects_the_certificate_counts_as_a_miss_with_a_reason(state: Path) -> None:
    seen: list[Outcome] = []
    replay = session(exchange(1, HI, "one"))
    distrusting = ssl.create_default_context()
    with opening(replay, state, on_outcome=seen.append) as (running, _, _told), client(running, distrusting) as asking:
        for host in (HOST, HOST, "telemetry.example.org"):
            with pytest.raises(httpx.ConnectError):
                asking.get(f"https://{host}/v1/models")
        _wait_for(lambda: len(replay.report().strayed) == 1)
    [missed] = replay.report().missed
    assert (missed.what, missed.reason, missed.times) == (f"CONNECT {HOST}:443", "not opened", 2)
    assert "did not accept wiretape's certificate" in missed.message
    assert f"use http://127.0.0.1:{running.port}/{HOST} instead of https://{HOST}" in missed.message
    assert [type(outcome) for outcome in seen] == [Miss]


def test_a_client_that_disconnects_is_not_a_miss(state: Path) -> None:
    replay = session(exchange(1, HI, "one"))
    with opening(replay, state) as (running, trust, _):
        tunnel(running, HOST).close()
        with client(running, trust) as asking:
            assert text(asking.post(CHAT, json=HI)) == "one"
    assert (replay.report().missed, replay.report().strayed) == ((), ())


def test_connections_without_http_are_refused_and_listed(state: Path) -> None:
    replay = session(exchange(1, HI, "one"))
    with opening(replay, state) as (running, _, _told), tunnel(running, "db.example.org", 5432) as raw:
        raw.sendall(b"\x00\x00\x00\x08\x04\xd2\x16\x2f" * 4)
        assert raw.recv(4096) == b""
        _wait_for(lambda: bool(replay.report().strayed))
    assert [(one.what, one.note) for one in replay.report().strayed] == [
        ("CONNECT db.example.org:5432", "its client did not send HTTP")
    ]


def test_a_proxy_that_cannot_start_forwards_nothing(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wiretape.adapters.mitm.tls_interception import LazyReplayProxy

    def fails(opener: object) -> None:
        raise OSError("no room for it")

    monkeypatch.setattr(LazyReplayProxy, "_start", fails)
    replay = session(exchange(1, HI, "one"))
    with (
        opening(replay, state) as (running, trust, _),
        client(running, trust) as asking,
        pytest.raises(httpx.ProxyError, match="502"),
    ):
        asking.post(CHAT, json=HI)
    [missed] = replay.report().missed
    assert "no room for it" in missed.message


def _wait_for(condition: Any) -> None:
    until = time.monotonic() + PATIENCE_S
    while not condition() and time.monotonic() < until:
        time.sleep(0.01)
    assert condition()


# The command line

QUIET = {
    **{name: value for name, value in os.environ.items() if not name.upper().endswith(("_PROXY", "_BASE_URL"))},
    "NO_COLOR": "1",
    "COLUMNS": "120",
}
STUBBORN = """
import json, os, ssl, sys
from http.client import HTTPSConnection
from urllib.parse import urlsplit
for said in sys.argv[1:]:
    proxy = urlsplit(os.environ["HTTPS_PROXY"])
    connection = HTTPSConnection(proxy.hostname, proxy.port, timeout=30)
    connection.set_tunnel("api.deepseek.com", 443)
    body = {"model": "m", "messages": [{"role": "user", "content": said}]}
    connection.request("POST", "/chat/completions", json.dumps(body), {"content-type": "application/json"})
    answer = json.load(connection.getresponse())
    print(answer["choices"][0]["message"]["content"] if "choices" in answer else answer["error"]["code"])
    connection.close()
"""


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    path = tmp_path / "one.tape"
    recorder = Recorder(path, clock=lambda: 0.0, started=datetime(2026, 2, 28, tzinfo=UTC), redactor=Redactor())
    x = recorder.begin("POST", "https://api.deepseek.com/chat/completions", "2", [("content-type", "application/json")])
    recorder.request_data(x, orjson.dumps({"model": "m", "messages": [user("hi")]}))
    recorder.request_end(x)
    recorder.response(x, 200, [("content-type", "application/json")])
    recorder.response_data(x, orjson.dumps({"choices": [{"message": {"role": "assistant", "content": "one"}}]}))
    recorder.end(x, Ended.COMPLETE)
    assert not recorder.close().incomplete
    assert len(read_tape(path).exchanges) == 1
    return path


def wiretape(state: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "wiretape", *map(str, arguments)]
    environ = {**QUIET, "XDG_STATE_HOME": str(state)}
    return subprocess.run(command, capture_output=True, encoding="utf-8", env=environ, timeout=120)


@pytest.mark.slow
def test_a_program_whose_address_cannot_be_changed_just_works(tape: Path, state: Path) -> None:
    done = wiretape(state, "replay", tape, "--", sys.executable, "-c", STUBBORN, "hi")
    assert (done.returncode, done.stdout) == (0, "one\n"), done.stderr
    assert "played      1 call (1 exact)" in done.stderr


@pytest.mark.slow
def test_a_swallowed_miss_makes_the_exit_code_3(tape: Path, state: Path) -> None:
    done = wiretape(state, "replay", "--proxy", tape, "--", sys.executable, "-c", STUBBORN, "hi", "other")
    assert (done.returncode, done.stdout) == (3, "one\nwiretape_miss\n"), done.stderr
    assert "differs from its start at messages[0].content" in done.stderr


@pytest.mark.slow
def test_without_a_program_it_serves_as_a_proxy_on_the_given_port(tape: Path, state: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "wiretape", "replay", "--proxy", "--port", str(port), str(tape)]
    environ = {**QUIET, "XDG_STATE_HOME": str(state)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ) as running:
        try:
            exported = _exports(running)
            assert exported["HTTPS_PROXY"] == f"http://127.0.0.1:{port}"
            done = subprocess.run(
                [sys.executable, "-c", STUBBORN, "hi"], env={**QUIET, **exported}, capture_output=True, timeout=60
            )
            assert done.stdout == b"one\n", done.stderr
        finally:
            running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=60)
    assert running.returncode == 0
    assert f"as a proxy on http://127.0.0.1:{port}, until Ctrl-C" in said
    assert "played      1 call (1 exact)" in said


def _exports(running: subprocess.Popen[str]) -> dict[str, str]:
    """The variables that it prints, up to the last of them."""
    assert running.stdout is not None
    exported = {}
    for line in running.stdout:
        name, _, value = line.removeprefix("export ").strip().partition("=")
        exported[name] = value.strip("'")
        if name == "DENO_CERT":
            break
    return exported
