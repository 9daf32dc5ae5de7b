"""A loop with a model and a tool: recorded, then replayed without either, also from tapes without wrapped tools."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.scripted import asks, says, scripted_model

import wiretape
from wiretape.cli.main import main
from wiretape.runs.run import build_run
from wiretape.tape.reading.reader import read_tape
from wiretape.wire.mcp.traffic import served_tool_calls
from wiretape.wire.registry import decode

ran: list[str] = []


def get_weather(city: str) -> dict[str, Any]:
    ran.append(city)
    return {"city": city, "degrees": 7}


wrapped = wiretape.tool(get_weather)


def loop(url: str, tool: Callable[..., Any]) -> str:
    """An agent of a few lines."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "How warm is it in Bern?"}]
    while True:
        body = {"model": "scripted-1", "messages": messages}
        answer = httpx.post(f"{url}/v1/chat/completions", json=body).raise_for_status().json()
        message = answer["choices"][0]["message"]
        messages.append(message)
        if not message.get("tool_calls"):
            return str(message["content"])
        for call in message["tool_calls"]:
            given = tool(**json.loads(call["function"]["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps(given)})


@pytest.fixture(params=[wrapped, get_weather], ids=["wrapped", "plain"])
def recorded(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    """A tape, and the address that its model had."""
    tape = tmp_path / "weather.tape"
    answers = [asks("get_weather", '{"city": "Bern"}'), says("Seven degrees.")]
    with scripted_model(answers) as model, wiretape.record(tape):
        assert loop(model.url, request.param) == "Seven degrees."
    ran.clear()
    return tape, model.url


def test_the_loop_runs_with_neither_model_nor_tool(recorded: tuple[Path, str]) -> None:
    tape, url = recorded
    with wiretape.replay(tape) as replayed:
        assert loop(url, wrapped) == "Seven degrees."
    assert ran == []
    assert {played.tier for played in replayed.report.played} == {"exact"}
    with wiretape.replay(tape) as replayed:
        assert loop(url, replayed.tool("get_weather")) == "Seven degrees."
    assert {played.tier for played in replayed.report.played} == {"exact"}


def test_a_different_tool_call_is_a_miss_with_the_difference(recorded: tuple[Path, str]) -> None:
    tape, _ = recorded
    with pytest.raises(wiretape.MissError, match=r"diverges from .* at arguments\.city"), wiretape.replay(tape):
        wrapped(city="Oslo")


def test_the_tape_pairs_a_wrapped_tool_with_its_model_call(tmp_path: Path) -> None:
    tape = tmp_path / "weather.tape"
    answers = [asks("get_weather", '{"city": "Bern"}'), says("Seven degrees.")]
    with scripted_model(answers) as model, wiretape.record(tape):
        loop(model.url, wrapped)
    exchanges = read_tape(tape).exchanges
    run = build_run(decode(exchanges), served=served_tool_calls(exchanges))
    (use,) = run.tool_uses
    assert (use.exchange, use.result_call) == (2, 2)
    assert use.ran_ms is not None


def test_such_a_tape_can_be_shown_and_replayed(recorded: tuple[Path, str], capsys: pytest.CaptureFixture[str]) -> None:
    tape, _ = recorded
    for command in ("show", "stats", "rerun"):
        assert main([command, str(tape)]) == 0
    assert "2 calls (1 given, 1 equal): equal" in capsys.readouterr().out


def test_an_mcp_tool_is_answered_under_its_own_name() -> None:
    from datetime import UTC, datetime

    from wiretape.model.http import Ended, Exchange, Headers, JsonBody, Request, Response
    from wiretape.tape.format.documents import Header

    call = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "seats", "arguments": {"row": 1}}}
    result = {"jsonrpc": "2.0", "id": 3, "result": {"content": [{"type": "text", "text": '{"free": 4}'}]}}
    kind = Headers([("content-type", "application/json")])
    request = Request("POST", "https://tools.example/mcp", kind, JsonBody(call))
    exchange = Exchange(1, 0, request, Response(200, kind, 1, JsonBody(result)), Ended.COMPLETE, 2)
    header = Header(started=datetime(2026, 1, 1, tzinfo=UTC), recorder="hand")
    tape = wiretape.Tape(None, header, (exchange,))
    assert tape.tool("seats")(row=1) == {"free": 4}
