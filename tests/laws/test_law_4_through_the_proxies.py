"""Law 4 through intercepted TLS: recording a replay through both proxies gives the recording again.

Every capture, as if recorded from a TLS host, and a WebSocket: one process replays it through its proxy, and another
records it with that proxy as its upstream.
"""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("mitmproxy", reason="opening TLS needs mitmproxy (Python 3.12 or later)")
pytest.importorskip("mitmproxy.addons", reason="opening TLS needs mitmproxy (Python 3.12 or later)")
pytest.importorskip("websockets", reason="websockets is not installed")

from tests.support.proxying import recording
from tests.support.sockets import create, events, message

from wiretape.model.http import Ended, Exchange, body_bytes
from wiretape.tape.reading.reader import read_tape
from wiretape.tape.recording.recorder import Recorder
from wiretape.tape.redaction import Redactor

pytestmark = [pytest.mark.proxy, pytest.mark.slow]

CAPTURES = sorted((Path(__file__).parent.parent.parent / "captures").glob("*.tape"))
HOST = "models.example.org"
TALK = [create("hi"), *events("r1", message("一")), create("more"), *events("r2", message("二"))]
SENT = {"accept-encoding": "identity", "content-type": "application/json"}


@pytest.fixture(scope="module")
def tapes(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("tapes")
    made = []
    for capture in CAPTURES:
        text = capture.read_text(encoding="utf-8")
        assert '"url": "http://127.0.0.1:8137' in text
        made.append(folder / capture.name)
        made[-1].write_text(text.replace('"url": "http://127.0.0.1:8137', f'"url": "https://{HOST}'), encoding="utf-8")
    made.append(folder / "socket.tape")
    _record_socket(made[-1])
    return made


def _record_socket(path: Path) -> None:
    with writing(path) as recorder:
        x = recorder.begin("GET", f"https://{HOST}/v1/responses", "1.1", [("upgrade", "websocket")])
        recorder.request_end(x)
        recorder.response(x, 101, [("upgrade", "websocket")])
        for sender, said in TALK:
            recorder.message(x, sender, json.dumps(said))
        recorder.close_ws(x, 1000, "", "client")
        recorder.end(x, Ended.COMPLETE)


@contextmanager
def writing(path: Path) -> Iterator[Recorder]:
    recorder = Recorder(path, clock=time.monotonic, started=datetime.now(UTC), redactor=Redactor())
    yield recorder
    assert recorder.close().troubles == ()


@contextmanager
def replayed(tapes: list[Path], state: Path, report: Path) -> Iterator[dict[str, str]]:
    """The variables of a replay that intercepts TLS, in a separate process."""
    quiet = {name: value for name, value in os.environ.items() if not name.upper().endswith(("_PROXY", "_BASE_URL"))}
    command = [sys.executable, "-m", "wiretape", "replay", "--proxy", "--report", str(report), *map(str, tapes)]
    environ = {**quiet, "XDG_STATE_HOME": str(state)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ) as running:
        try:
            assert running.stdout is not None
            exported = {}
            for line in running.stdout:
                name, _, value = line.removeprefix("export ").strip().partition("=")
                exported[name] = value.strip("'")
                if name == "DENO_CERT":
                    break
            yield exported
        finally:
            running.send_signal(signal.SIGINT)
            said = running.communicate(timeout=120)[1]
    assert running.returncode == 0, said


def test_recording_a_replay_in_tls_gives_the_recording(tapes: list[Path], tmp_path: Path) -> None:
    again = tmp_path / "again.tape"
    wanted = [exchange for tape in tapes for exchange in read_tape(tape).exchanges]
    for folder in ("theirs", "ours"):
        (tmp_path / folder).mkdir()
    with (
        replayed(tapes, tmp_path / "theirs", tmp_path / "report.json") as exported,
        writing(again) as recorder,
        recording(recorder, tmp_path / "ours", exported, hosts=[HOST]) as (running, troubles),
    ):
        proxy = f"http://127.0.0.1:{running.port}"
        trust = ssl.create_default_context(cafile=running.variables()["SSL_CERT_FILE"])
        with httpx.Client(proxy=proxy, verify=trust, trust_env=False, timeout=60) as asking:
            for exchange in wanted:
                if exchange.messages:
                    _talk(exchange, proxy, trust)
                else:
                    request = exchange.request
                    asking.request(request.method, request.url, content=body_bytes(request.body), headers=SENT)
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert {played["tier"] for played in report["played"]} == {"exact"}
    assert (report["missed"], report["left_over"], report["strayed"], report["sockets"]) == ([], [], [], 0)
    assert troubles == []
    got = read_tape(again).exchanges
    assert list(map(told, got)) == list(map(told, wanted))


def _talk(exchange: Exchange, proxy: str, trust: ssl.SSLContext) -> None:
    from websockets.sync.client import connect

    with connect(exchange.request.url.replace("https", "wss"), proxy=proxy, ssl=trust) as socket:
        for said in exchange.messages:
            text = body_bytes(said.body).decode()
            if said.sender == "client":
                socket.send(text)
            else:
                assert socket.recv(timeout=60) == text


def told(exchange: Exchange) -> tuple[Any, ...]:
    """An exchange without its times, the headers of its connections, and content-encoding."""
    request, response = exchange.request, exchange.response
    assert response is not None
    messages = [(said.sender, body_bytes(said.body)) for said in exchange.messages]
    answer = (response.status, response.headers.get("content-type"), body_bytes(response.body))
    sent = (request.method, request.url, body_bytes(request.body))
    return (*sent, *answer, messages, exchange.close, exchange.ended)
