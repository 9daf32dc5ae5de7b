"""A password chosen by the model reaches the replayed tool unchanged, unless the user wants it replaced."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

import wiretape

PASSWORD = "mellon-of-the-west-gate-7Kq2Zx9v"


class Model(BaseHTTPRequestHandler):
    """Calls the tool, then reports its result."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        call = {"type": "tool_use", "id": "toolu_1", "name": "open_gate", "input": {"password": PASSWORD}}
        content = [call] if len(body["messages"]) == 1 else [{"type": "text", "text": "The gate is open."}]
        usage = {"input_tokens": 9, "output_tokens": 3}
        answer = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": content,
            "usage": usage,
        }
        raw = json.dumps({**answer, "stop_reason": "end_turn"}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1/messages"
    server.shutdown()
    server.server_close()


def agent(url: str) -> tuple[str, str]:
    """What the tool was called with, and the last answer."""
    messages: list[object] = [{"role": "user", "content": "Open the gate"}]
    headers = {"x-api-key": "sk-ant-test"}
    first = httpx.post(url, json={"model": "m", "max_tokens": 9, "messages": messages}, headers=headers).json()
    given = first["content"][0]["input"]["password"]
    result = "open" if given == PASSWORD else "wrong password"
    messages += [
        {"role": "assistant", "content": first["content"]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": result}]},
    ]
    last = httpx.post(url, json={"model": "m", "max_tokens": 9, "messages": messages}, headers=headers).json()
    return given, last["content"][0]["text"]


def test_the_replayed_tool_gets_the_password(tmp_path: Path, url: str) -> None:
    tape = tmp_path / "gate.tape"
    with wiretape.record(tape):
        assert agent(url) == (PASSWORD, "The gate is open.")
    with wiretape.replay(tape):
        assert agent(url) == (PASSWORD, "The gate is open.")


def test_a_project_may_have_it_replaced(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.wiretape]\nredact_tool_arguments = true\n")
    monkeypatch.chdir(tmp_path)
    with wiretape.record(tmp_path / "gate.tape"):
        assert agent(url) == (PASSWORD, "The gate is open.")
    assert PASSWORD not in (tmp_path / "gate.tape").read_text()
