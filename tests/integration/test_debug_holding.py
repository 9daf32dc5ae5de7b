"""Calls held while they are recorded: clients get keep-alives, and WebSockets are held in order."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("mitmproxy", reason="the recorder needs mitmproxy (Python 3.12 or later)")
pytest.importorskip("mitmproxy.addons", reason="the recorder needs mitmproxy (Python 3.12 or later)")

from tests.support.counting import CountingModel
from tests.support.live import Stage, recorded_stage
from tests.support.socket_upstream import Client, socket_upstream
from tests.support.sockets import events, function_call, message

from wiretape.adapters.http1 import send_playback
from wiretape.adapters.http1.send_playback import COMMENT
from wiretape.adapters.live import decision_queue
from wiretape.model.http import Ended, Exchange, body_bytes
from wiretape.tape.reading.reader import read_tape
from wiretape.wire.registry import decode

pytestmark = [pytest.mark.proxy, pytest.mark.slow]


@contextmanager
def asked_once(
    state: Path, tape: Path, monkeypatch: pytest.MonkeyPatch, patience: int | None = None
) -> Iterator[tuple[Stage, list[bytes]]]:
    """A stream is asked for, and held with its answer; what its client has heard so far, as it crossed the wire.

    `patience`: the client hangs up after so many comments.
    """
    monkeypatch.setattr(send_playback, "KEEP_ALIVE_SECONDS", 0.05)
    body = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "one"}]}).encode()
    heard: list[bytes] = []
    with CountingModel() as model, recorded_stage(model.url, tape, state) as on:
        there = urlsplit(on.url)

        def client() -> bytes:
            with socket.create_connection((there.hostname or "", there.port or 0), 30) as connection:
                head = f"POST {there.path}/chat/completions HTTP/1.1\r\nhost: {there.netloc}\r\nconnection: close\r\n"
                head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
                connection.sendall(head.encode() + body)
                while data := connection.recv(65536):
                    heard.append(data)
                    if patience is not None and b"".join(heard).count(COMMENT) >= patience:
                        break
            return b"".join(heard)

        over = threading.Event()  # the program continues after this client disconnects
        on.play(client, *([over.wait] if patience is not None else []))
        assert "call 1 is held with its answer" in on.type_in("break finish=stop", "continue")
        on.wait_for(lambda: b"".join(heard).count(COMMENT) >= 2)
        yield on, heard
        over.set()


def unchunked(data: bytes) -> tuple[str, bytes]:
    head, _, rest = data.partition(b"\r\n\r\n")
    body = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        body, rest = body + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
    return head.decode().lower(), body


def one(tape: Path) -> Exchange:
    (exchange,) = read_tape(tape).exchanges
    return exchange


def test_the_client_of_a_held_stream_gets_keep_alives_and_the_tape_has_the_models_events(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with asked_once(state, tmp_path / "a.tape", monkeypatch) as (on, _):
        on.type_in("continue")
        head, body = unchunked(on.result())
    assert head.startswith("http/1.1 200")
    assert "content-type: text/event-stream" in head
    assert "content-length" not in head
    kept = one(tmp_path / "a.tape").response
    assert kept is not None
    assert body.replace(COMMENT, b"") == body_bytes(kept.body)
    assert b"answer 1 to" not in COMMENT
    assert COMMENT not in body_bytes(kept.body)
    assert "content-length" in kept.headers


def test_a_held_stream_can_be_edited_or_dropped_but_not_replaced_by_a_fault(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with asked_once(state, tmp_path / "a.tape", monkeypatch) as (on, _):
        assert "inject is too late" in on.type_in("inject 429", "continue")
        on.type_in("say Edited.", "continue")
        _, body = unchunked(on.result())
    said = [json.loads(line[6:]) for line in body.splitlines() if line.startswith(b"data: {")]
    assert "".join(one["choices"][0]["delta"].get("content", "") for one in said).strip() == "Edited."
    (call,) = decode(read_tape(tmp_path / "a.tape").exchanges)
    assert "Edited." in str(call.response)


def test_a_held_call_is_removed_when_its_client_disconnects(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with asked_once(state, tmp_path / "a.tape", monkeypatch, patience=2) as (on, _):
        on.wait_for(lambda: on.live.pending == [])
        assert on.live.running
        assert "call 1 is not held" in on.type_in("serve 1")
    left = one(tmp_path / "a.tape")
    assert left.ended is Ended.CLIENT_CLOSED
    assert left.response is not None
    assert body_bytes(left.response.body) == b""  # what it did not hear


@pytest.mark.parametrize(("held", "stop"), [("before it is sent", "step"), ("with its answer", "break finish=stop")])
def test_a_held_call_without_a_stream_is_removed_when_its_client_disconnects(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: str, stop: str
) -> None:
    monkeypatch.setattr(decision_queue, "LOOK_S", 0.02)
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "one"}]}).encode()
    left, over = threading.Event(), threading.Event()
    with CountingModel() as model, recorded_stage(model.url, tmp_path / "a.tape", state) as on:
        there = urlsplit(on.url)

        def client() -> None:
            with socket.create_connection((there.hostname or "", there.port or 0), 30) as connection:
                head = f"POST {there.path}/chat/completions HTTP/1.1\r\nhost: {there.netloc}\r\n"
                head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
                connection.sendall(head.encode() + body)
                left.wait()

        on.play(client, over.wait)
        assert f"call 1 is held {held}" in on.type_in(stop, *([] if stop == "step" else ["continue"]))
        left.set()
        on.wait_for(lambda: on.live.pending == [])
        over.set()
        assert model.asked == ([] if stop == "step" else ["one"])
    assert one(tmp_path / "a.tape").ended is Ended.CLIENT_CLOSED


def test_a_drop_cuts_a_started_answer(state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with asked_once(state, tmp_path / "a.tape", monkeypatch) as (on, heard):
        on.type_in("drop", "continue")
        on.result()
    assert not b"".join(heard).endswith(b"0\r\n\r\n")
    assert one(tmp_path / "a.tape").ended is Ended.UPSTREAM_CLOSED


def script(number: int, asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
    output = [[function_call("weather", "c1")], [message("It rains.")]]
    yield from (said for _, said in events(f"r{number}", *output[number - 1]))


def test_calls_of_a_websocket_are_held_before_they_are_sent_and_with_their_answers(state: Path, tmp_path: Path) -> None:
    asked: list[dict[str, Any]] = []

    def noted(number: int, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        asked.append(body)
        yield from script(number, body)

    with (
        socket_upstream(noted) as port,
        recorded_stage(f"http://127.0.0.1:{port}/v1", tmp_path / "a.tape", state) as on,
    ):

        def client() -> str:
            speaking = Client(on.url)
            first = speaking.ask(input=[{"role": "user", "content": "How is the weather?"}])
            result = {"type": "function_call_output", "call_id": first["output"][0]["call_id"], "output": "rain"}
            last = speaking.ask(input=[result], previous_response_id=first["id"])
            speaking.close()
            return str(last["output"][0]["content"][0]["text"])

        on.play(client)
        shown = on.type_in("step")
        assert "call 1 is held before it is sent" in shown
        assert "How is the weather?" in shown
        assert asked == []
        assert "exchange = 1\n" in on.type_in("print exchange") + "\n"
        assert "How is the weather?" in on.type_in("print body.input[0].content")
        assert "it shares its connection with other calls" in on.type_in("drop")
        shown = on.type_in("break tool=weather", "continue")
        assert "call 1 is held with its answer" in shown
        assert "calls weather" in shown
        assert len(asked) == 1
        shown = on.type_in("step")
        assert "call 2 is held before it is sent" in shown
        assert "rain" in shown
        assert len(asked) == 1
        assert "exchange = 1\n" in on.type_in("print exchange") + "\n", "one connection, as on the tape"
        assert "function_call_output" in on.type_in("print body.input[0].type")
        assert "the program ended with exit code 0 after 2 calls" in " ".join(on.type_in("continue").split())
        assert on.result() == "It rains."
    said = [(m.sender, json.loads(body_bytes(m.body))["type"]) for m in one(tmp_path / "a.tape").messages]
    assert [kind for sender, kind in said if sender == "client"] == ["response.create"] * 2
    assert [kind for _, kind in said].count("response.completed") == 2
    assert [call.response.finish for call in decode(read_tape(tmp_path / "a.tape").exchanges) if call.response] == [
        "tool_calls",
        "stop",
    ]


def test_a_websocket_client_that_leaves_is_removed_and_nothing_is_sent_to_its_model(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decision_queue, "LOOK_S", 0.02)
    asked: list[dict[str, Any]] = []

    def noted(number: int, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        asked.append(body)
        yield from script(number, body)

    left = threading.Event()
    with (
        socket_upstream(noted) as port,
        recorded_stage(f"http://127.0.0.1:{port}/v1", tmp_path / "a.tape", state) as on,
    ):

        def client() -> None:
            speaking = Client(on.url)
            speaking.send(input=[{"role": "user", "content": "How is the weather?"}])
            left.wait()
            speaking.leave()

        over = threading.Event()  # the program continues after this client disconnects
        on.play(client, over.wait)
        assert "call 1 is held before it is sent" in on.type_in("step")
        left.set()
        on.wait_for(lambda: on.live.pending == [])
        assert "call 1 is not held" in on.type_in("serve 1")
        over.set()
    assert asked == []
    assert one(tmp_path / "a.tape").ended is Ended.CLIENT_CLOSED
