"""The captures: the statistics of each, and replays of the recorded programs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.make_captures import CAPTURE_LIST, KEY, ROOT, Capture

from wiretape.cli.main import main
from wiretape.tape.reading.reader import read_tape

BY_NAME = {capture.name: capture for capture in CAPTURE_LIST}


def stats(name: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["stats", str(BY_NAME[name].path), "--json"]) == 0
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    return report


def usage(step: dict[str, Any]) -> dict[str, Any] | None:
    """The token counts of a step that are known."""
    if step["usage"] is None:
        return None
    names = ("input", "cached", "cache_write", "output", "reasoning")
    return {name: step["usage"][name] for name in names if step["usage"][name] is not None}


@pytest.mark.parametrize("capture", CAPTURE_LIST, ids=lambda capture: capture.name)
def test_a_capture_is_complete_and_states_its_provenance(capture: Capture) -> None:
    tape = read_tape(capture.path)
    assert tape.warnings == ()
    assert not tape.incomplete
    assert capture.provenance in str(tape.header.provenance)
    assert all(str(exchange.ended) == "complete" for exchange in tape.exchanges)


@pytest.mark.parametrize("capture", CAPTURE_LIST, ids=lambda capture: capture.name)
def test_capture_names_no_machine_and_no_key(capture: Capture) -> None:
    text = capture.path.read_text(encoding="utf-8")
    assert '"authorization": "Bearer [redacted:' in text
    assert KEY not in text
    assert str(ROOT) not in text


def test_subagents(capsys: pytest.CaptureFixture[str]) -> None:
    report = stats("subagents", capsys)
    assert (report["calls"], report["tool_calls"], report["agents"]) == (4, 2, 2)
    (turn,) = report["turns"]
    assert turn["user"] == "帮我约明天下午 3 点和张三开产品评审会，1 小时"
    assert (turn["calls"], turn["tool_calls"], turn["agents"]) == (4, 2, 2)
    steps = turn["steps"]
    assert [usage(step) for step in steps] == [
        {"input": 347, "output": 75, "reasoning": 18},
        None,
        None,
        {"input": 462, "cached": 256, "output": 31},
    ]
    assert [step["tool_calls"] for step in steps] == [["schedule_event"], ["create_calendar_event"], [], []]
    assert [step["agent"] for step in steps] == [
        steps[0]["agent"],
        steps[1]["agent"],
        steps[1]["agent"],
        steps[0]["agent"],
    ]
    assert steps[0]["agent"] != steps[1]["agent"]
    assert {step["model"] for step in steps} == {"deepseek-flash"}
    assert {step["requested_model"] for step in steps} == {"deepseek-v4-flash-vision-exp"}
    assert [step["cause"]["kind"] for step in steps] == ["turn_start", "subagent", "tool_results", "tool_results"]
    assert report["usage"]["input"] == 347 + 462
    assert report["usage"]["output"] == 75 + 31
    assert report["usage"]["unknown_calls"] == 2


def test_weather_without_a_tool(capsys: pytest.CaptureFixture[str]) -> None:
    report = stats("weather-no-tool", capsys)
    assert (report["calls"], report["tool_calls"], report["agents"], len(report["turns"])) == (1, 0, 1, 1)
    (step,) = report["turns"][0]["steps"]
    assert usage(step) == {"input": 868, "cached": 0, "output": 21, "reasoning": 0}
    assert (step["finish"], step["model"]) == ("stop", "豆包·1.6·极致速度·250828")


def test_weather_with_one_tool(capsys: pytest.CaptureFixture[str]) -> None:
    report = stats("weather-one-tool", capsys)
    assert (report["calls"], report["tool_calls"], report["agents"]) == (3, 1, 1)
    first, last = report["turns"]
    assert (first["user"], first["calls"]) == ("你是谁？", 1)
    assert (last["user"], last["calls"], last["tool_calls"]) == ("我在成都，明天天气如何？", 2, 1)
    assert usage(first["steps"][0]) == {"input": 868, "cached": 0, "output": 21, "reasoning": 0}
    assert usage(last["steps"][0]) == {"input": 906, "cached": 0, "output": 48, "reasoning": 0}
    assert usage(last["steps"][1]) is None
    assert [step["finish"] for step in last["steps"]] == ["tool_calls", "stop"]
    assert [step["tool_calls"] for step in last["steps"]] == [["mojitianqi-DayWeather"], []]


def test_route_with_two_tools(capsys: pytest.CaptureFixture[str]) -> None:
    report = stats("route-two-tools", capsys)
    assert (report["calls"], report["tool_calls"], report["agents"], len(report["turns"])) == (3, 2, 1, 1)
    steps = report["turns"][0]["steps"]
    assert [step["tool_calls"] for step in steps] == [["mojitianqi-DayWeather"], ["gaodedetu-plan_bicycle"], []]
    assert [usage(step) for step in steps] == [None, None, None]
    assert report["usage"]["input"] is None
    assert report["usage"]["unknown_calls"] == 3


def test_introduction(capsys: pytest.CaptureFixture[str]) -> None:
    report = stats("introduction", capsys)
    assert (report["calls"], report["tool_calls"], len(report["turns"])) == (1, 0, 1)
    (step,) = report["turns"][0]["steps"]
    assert usage(step) == {"input": 11, "cached": 0, "output": 162, "reasoning": 134}


def test_clock_thinking(capsys: pytest.CaptureFixture[str]) -> None:
    report = stats("clock-thinking", capsys)
    assert (report["calls"], report["tool_calls"], len(report["turns"])) == (2, 1, 1)
    first, second = report["turns"][0]["steps"]
    assert usage(first) == {"input": 316, "cached": 256, "output": 86, "reasoning": 37}
    assert first["hit_rate"] == pytest.approx(256 / 316)
    assert (first["tool_calls"], usage(second)) == (["getCurrentTime"], None)


def test_dialect_traits_are_on_the_tapes() -> None:
    weather = BY_NAME["weather-one-tool"].path.read_text(encoding="utf-8")
    for trait in ('"stream": true', '"stop_reason": "tool_calls"', '"name": "mojitianqi-DayWeather"'):
        assert trait in weather
    assert "tool_call_id" not in weather
    subagents = BY_NAME["subagents"].path.read_text(encoding="utf-8")
    for trait in ('"encrypted_content": "713dda7a-2723-4f52-b22a-26483d8ee7e9-0"', '"phase": "final_answer"'):
        assert trait in subagents
    assert '"reasoning_content"' in BY_NAME["clock-thinking"].path.read_text(encoding="utf-8")
