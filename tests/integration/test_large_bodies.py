"""A large body through the recorder is complete on the tape and costs the proxy's event loop little.

What the loop does at a time is measured in CPU time of its thread, which does not depend on how busy the machine is.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mitmproxy", reason="the recorder needs mitmproxy (Python 3.12 or later)")
pytest.importorskip("mitmproxy.addons", reason="the recorder needs mitmproxy (Python 3.12 or later)")

from tests.support.proxying import PATIENCE_S, recording
from tests.support.taping import STARTED

from wiretape.model.http import body_bytes
from wiretape.tape.reading.reader import read_tape
from wiretape.tape.recording.recorder import Recorder
from wiretape.tape.redaction import Redactor, Regions

pytestmark = [pytest.mark.proxy, pytest.mark.slow]
BODY = json.dumps(
    {"model": "m", "messages": [{"role": "user", "content": "It is sunny in Lisbon. " * 220_000}]}
).encode()
ANSWER = b'{"choices": [{"message": {"role": "assistant", "content": "Sunny. "}, "finish_reason": "stop"}]}'
MOST_S = 0.02  # of one step of the loop


class Server(BaseHTTPRequestHandler):
    """Answers with BODY at /large, with 40 MB at /huge, else with ANSWER."""

    protocol_version = "HTTP/1.1"
    written = 0

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        body = BODY if self.path == "/large" else b"It rains " * 5_000_000 if self.path == "/huge" else ANSWER
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        for start in range(0, len(body), 65536):
            Server.written += self.wfile.write(body[start : start + 65536])

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def upstream() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


@contextmanager
def steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The CPU time of each step of the proxy's event loop."""
    found: list[float] = []
    run: Callable[[asyncio.Handle], None] = asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        before = time.thread_time()
        run(handle)
        if threading.current_thread().name == "wiretape-proxy":
            found.append(time.thread_time() - before)

    with monkeypatch.context() as patched:
        patched.setattr(asyncio.Handle, "_run", timed)
        yield found


@contextmanager
def recorder(path: Path) -> Iterator[Recorder]:
    made = Recorder(path, clock=time.monotonic, started=STARTED, redactor=Redactor())
    yield made
    assert not made.close().incomplete


def post(port: int, upstream: int, path: str, body: bytes) -> bytes:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    client.request("POST", f"/http:127.0.0.1:{upstream}{path}", body, {"content-type": "application/json"})
    answer = client.getresponse().read()
    client.close()
    return answer


@pytest.mark.parametrize(
    ("path", "size"),
    [("/held", 3_000_000), ("/streamed", 5_000_000), ("/large", 100)],
    ids=["held", "streamed", "answer"],
)
def test_the_loop_does_little_for_a_large_body(
    path: str, size: int, upstream: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = BODY[: size - 20] + b'"}]}'  # up to 4 MB are held until they are whole
    with (
        steps(monkeypatch) as found,
        recorder(tmp_path / "large.tape") as made,
        recording(made, tmp_path / "state") as (running, troubles),
    ):
        post(running.port, upstream, "/warm", b"{}")
        found.clear()
        answer = post(running.port, upstream, path, text)
    assert not troubles
    assert max(found) < MOST_S
    (_, exchange) = read_tape(tmp_path / "large.tape").exchanges
    assert body_bytes(exchange.request.body) == text
    assert exchange.response is not None
    assert body_bytes(exchange.response.body) == answer == (BODY if path == "/large" else ANSWER)


def test_a_secret_that_is_split_over_slices_is_replaced(upstream: int, tmp_path: Path) -> None:
    """A secret that spans slices of a large body is redacted."""
    source = random.Random(5)
    keys = [f"sk-proj-{''.join(source.choices('QWERTZuiopas23456789', k=40))}" for _ in range(200)]
    text = json.dumps(
        {"messages": [{"role": "user", "content": "".join(f"{key} {'x ' * 997}" for key in keys)}]}
    ).encode()
    path = tmp_path / "keys.tape"
    with recorder(path) as made, recording(made, tmp_path / "state") as (running, _):
        post(running.port, upstream, "/keys", text)
        journal = path.with_name(f"{path.name}.journal").read_bytes()
    assert not [key for key in keys if key.encode() in journal + path.read_bytes()]


class Stopped(Redactor):
    """Blocks at the first large piece of a body until the test releases it."""

    def __init__(self) -> None:
        super().__init__()
        self.stopped, self.go_on = threading.Event(), threading.Event()

    def data(self, data: bytes, regions: Regions | None = None) -> bytes:
        if len(data) > 10_000:
            self.stopped.set()
            assert self.go_on.wait(PATIENCE_S)
        return super().data(data, regions)


def test_only_a_little_of_a_body_is_read_while_it_waits(upstream: int, tmp_path: Path) -> None:
    redactor = Stopped()
    made = Recorder(tmp_path / "slow.tape", clock=time.monotonic, started=STARTED, redactor=redactor)
    with recording(made, tmp_path / "state") as (running, _):
        reading = threading.Thread(target=post, args=(running.port, upstream, "/huge", b"{}"))
        before = Server.written
        reading.start()
        assert redactor.stopped.wait(PATIENCE_S)
        last = -1
        while last != (last := Server.written):
            time.sleep(0.3)
        redactor.go_on.set()
        reading.join()
    assert last - before < 25_000_000, "what the sockets hold, and some chunks"
    assert Server.written - before == 45_000_000
    assert not made.close().incomplete


def test_a_call_is_answered_while_a_large_body_is_being_recorded(upstream: int, tmp_path: Path) -> None:
    """The worker stops in the middle of a large body: other calls do not wait for it."""
    redactor = Stopped()
    made = Recorder(tmp_path / "slow.tape", clock=time.monotonic, started=STARTED, redactor=redactor)
    with recording(made, tmp_path / "state") as (running, _):
        large = threading.Thread(target=post, args=(running.port, upstream, "/streamed", BODY))
        large.start()
        assert redactor.stopped.wait(PATIENCE_S)
        try:
            assert post(running.port, upstream, "/other", b"{}") == ANSWER
            assert large.is_alive()
        finally:
            redactor.go_on.set()
        large.join()
    assert not made.close().incomplete
