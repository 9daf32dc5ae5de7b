"""What `show` and `stats` say of tools whose servers are on the tape: where each ran, and channels that stay open."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.taping import SSE_TYPE, Taping
from tests.support.views import header
from tests.support.wire import CHAT, SSE, exchange, frame, stream

from wiretape.cli.main import main
from wiretape.model.http import Exchange, JsonBody
from wiretape.tape.writing.writer import write_tape

MCP = "http://127.0.0.1:8000/mcp"
ASKED = {"id": "c1", "type": "function", "function": {"name": "mcp__city__weather", "arguments": '{"city": "Oslo"}'}}
QUESTION = {"role": "user", "content": "How is it in Oslo?"}
USING = {"role": "assistant", "content": None, "tool_calls": [ASKED]}


def chat(number: int, at: int, messages: list[Any], answer: dict[str, Any], finish: str) -> Exchange:
    choice = {"index": 0, "message": {"role": "assistant", **answer}, "finish_reason": finish}
    body = JsonBody({"id": f"x{number}", "object": "chat.completion", "model": "m", "choices": [choice]})
    return exchange(CHAT, body, request={"model": "m", "messages": messages}, number=number, at=at)


def tape(path: Path) -> str:
    call = {"jsonrpc": "2.0", "id": 4, "method": "tools/call"}
    asked = {**call, "params": {"name": "weather", "arguments": {"city": "Oslo"}}}
    answer = {"jsonrpc": "2.0", "id": 4, "result": {"content": [{"type": "text", "text": "rain"}]}}
    ran = exchange(MCP, stream([frame(answer, "message")], [35]), request=asked, number=2, at=600, headers=SSE)
    back = [QUESTION, USING, {"role": "tool", "tool_call_id": "c1", "content": "rain"}]
    calls = [
        chat(1, 0, [QUESTION], {"content": None, "tool_calls": [ASKED]}, "tool_calls"),
        ran,
        chat(3, 2000, back, {"content": "It rains."}, "stop"),
    ]
    write_tape(path, header(), calls)
    return str(path)


def said(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    capsys.readouterr()
    assert main(argv) == 0
    return capsys.readouterr().out


def test_stats_and_show_say_where_a_tool_ran(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = tape(tmp_path / "a.tape")
    assert "ran     mcp__city__weather on x2 (135 ms)" in said(capsys, "stats", name)
    assert "    ran on x2, 135 ms\n" in said(capsys, "show", name, "1")
    report = json.loads(said(capsys, "stats", name, "--json"))
    first, second = report["turns"][0]["steps"]
    assert first["ran"] == [{"tool": "mcp__city__weather", "index": 0, "exchange": 2, "ms": 135}]
    assert (second["ran"], report["other_exchanges"], report["calls"]) == ([], 1, 2)
    assert json.loads(said(capsys, "show", name, "1", "--json"))["ran"][0]["exchange"] == 2


def test_the_exchange_itself_says_what_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = tape(tmp_path / "a.tape")
    assert "→ MCP tools/call weather, 200, text/event-stream" in said(capsys, "show", name)
    assert "MCP tools/call weather, 200" in said(capsys, "show", name, "x2")


def test_a_channel_that_never_ends_is_recorded_as_it_goes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    taping = Taping(tmp_path / "a.tape")
    recorder = taping.recorder
    x = recorder.begin("GET", MCP, "1.1", [("mcp-session-id", "s1"), ("accept", "text/event-stream")])
    recorder.request_end(x)
    recorder.response(x, 200, SSE_TYPE)
    for n in range(3):
        recorder.response_data(x, frame({"jsonrpc": "2.0", "id": n, "method": "ping"}, "message"))
    open_one = said(capsys, "show", str(tmp_path / "a.tape"))
    assert "MCP, an open channel from the server, 3 messages, 200" in open_one
    assert "still open" in " ".join(said(capsys, "show", str(tmp_path / "a.tape"), "x1").split())
    recorder.close()
    over = " ".join(said(capsys, "show", str(tmp_path / "a.tape"), "x1").split())
    assert "MCP, a channel from the server, 3 messages" in over
    assert "recorder stopped" in over
