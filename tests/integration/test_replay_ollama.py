"""Ollama's own SDK against a replay: plain answers, streams, a loop with a tool, a miss, and finding the server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.support.replaying import exchange, response, session
from tests.support.wire_binary import GENERATE, GENERATE_LINES, OLLAMA, WEATHER, lines

from wiretape.adapters.replay_runner import ReplayServer
from wiretape.matching.session import ReplaySession
from wiretape.model.http import Exchange, Headers, Response, StreamBody

ollama = pytest.importorskip("ollama", reason="the ollama SDK is not installed")

HI = {"role": "user", "content": "hi"}
ANSWER = {"model": "m", "created_at": "2026-01-01T00:00:00Z", "done": True, "done_reason": "stop", "eval_count": 2}


def streamed(frames: list[bytes]) -> Response:
    body = StreamBody(tuple(frames), tuple(range(len(frames))))
    return Response(200, Headers([("content-type", "application/x-ndjson")]), 0, body)


@contextmanager
def replaying(*recorded: Exchange) -> Iterator[tuple[ReplaySession, Any, ReplayServer]]:
    replay = session(*recorded)
    with ReplayServer(replay) as running, ollama.Client(host=f"http://127.0.0.1:{running.port}") as client:
        yield replay, client, running


def test_a_plain_answer_and_a_stream() -> None:
    plain = response({**ANSWER, "message": {"role": "assistant", "content": "Hello"}})
    pieces = [{"model": "m", "created_at": "t", "message": {"role": "assistant", "content": c}} for c in ("Hel", "lo")]
    frames = lines(*({**piece, "done": False} for piece in pieces), {**ANSWER, "message": {"role": "assistant"}})
    asked = {"model": "m", "messages": [HI], "tools": [], "stream": False}
    recorded = [
        exchange(1, asked, plain, url=OLLAMA),
        exchange(2, {**asked, "stream": True}, streamed(frames), url=OLLAMA),
    ]
    with replaying(*recorded) as (replay, client, _):
        assert client.chat(model="m", messages=[HI]).message.content == "Hello"
        parts = [part.message.content for part in client.chat(model="m", messages=[HI], stream=True)]
    assert [part or "" for part in parts] == ["Hel", "lo", ""]
    assert not replay.misses


def test_generate_streams() -> None:
    asked = {"model": "m", "prompt": "go", "stream": True}
    with replaying(exchange(1, asked, streamed(GENERATE_LINES), url=GENERATE)) as (replay, client, _):
        parts = list(client.generate(model="m", prompt="go", stream=True))
    assert "".join(part.response for part in parts) == "你好 🙂"
    assert (parts[-1].done_reason, list(parts[-1].context), replay.misses) == ("length", [1, 2, 3], [])


def test_a_loop_with_a_tool() -> None:
    asks = {"role": "assistant", "content": "", "tool_calls": [WEATHER]}
    result = {"role": "tool", "content": "20°", "tool_name": "weather"}
    first = {"model": "m", "messages": [HI], "tools": [], "stream": False}
    call = {"role": "assistant", "content": "", "tool_calls": [{"function": {k: WEATHER["function"][k] for k in
            ("name", "arguments")}}]}  # fmt: skip
    second = {**first, "messages": [HI, call, result]}
    with replaying(
        exchange(1, first, response({**ANSWER, "message": asks}), url=OLLAMA),
        exchange(2, second, response({**ANSWER, "message": {"role": "assistant", "content": "Warm."}}), url=OLLAMA),
    ) as (replay, client, _):
        history: list[Any] = [HI]
        made = client.chat(model="m", messages=history)
        assert dict(made.message.tool_calls[0].function.arguments) == {"城市": "成都", "n": 1}
        history += [made.message, result]
        assert client.chat(model="m", messages=history).message.content == "Warm."
    assert not replay.misses


def test_a_miss_is_shown() -> None:
    asked = {"model": "m", "messages": [HI], "tools": [], "stream": False}
    plain = response({**ANSWER, "message": {"role": "assistant", "content": "Hello"}})
    with (
        replaying(exchange(1, asked, plain, url=OLLAMA)) as (replay, client, _),
        pytest.raises(ollama.ResponseError) as seen,
    ):
        client.chat(model="m", messages=[{"role": "user", "content": "other"}])
    assert seen.value.status_code == 400
    assert "no call on hand.tape answers POST /api/chat" in str(seen.value)
    assert "live      other" in str(seen.value)
    assert len(replay.misses) == 1


def test_a_program_without_settings_is_routed_by_its_proxy() -> None:
    asked = {"model": "m", "messages": [HI], "tools": [], "stream": False}
    plain = response({**ANSWER, "message": {"role": "assistant", "content": "Hello"}})
    code = "import ollama; print(ollama.chat(model='m', messages=[{'role': 'user', 'content': 'hi'}]).message.content)"
    with replaying(exchange(1, asked, plain, url=OLLAMA)) as (replay, _, running):
        child = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, **running.variables({})},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert (child.stdout, child.returncode) == ("Hello\n", 0), child.stderr
    assert not replay.misses
