"""Pairs of tool calls and tool servers' calls: by name, arguments, and the time between request and result."""

from __future__ import annotations

import pytest
from tests.support.calls import asks, assistant, make_call, result, user

from wiretape.model.call import ModelCall, ServedToolCall
from wiretape.model.run import Run
from wiretape.runs.run import build_run
from wiretape.runs.tools import is_named


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("weather", "weather"),
        ("mcp__city__weather", "weather"),
        ("city_weather", "weather"),
        ("city-weather", "weather"),
        ("mcp__city.get_weather", "get-weather"),
        ("mcp__city__weather.now", "weather_now"),
        (
            ("mcp__a_server_with_a_long_name__" + "tool_with_a_very_long_name_indeed")[:64],
            "tool_with_a_very_long_name_indeed",
        ),
    ],
)
def test_clients_rename_tools(name: str, tool: str) -> None:
    assert is_named(name, tool)


@pytest.mark.parametrize(
    ("name", "tool"), [("weather", "time"), ("myweather", "weather"), ("weather", "city_weather"), ("weather", "")]
)
def test_other_names_are_other_tools(name: str, tool: str) -> None:
    assert not is_named(name, tool)


def calls() -> list[ModelCall]:
    """Two equal questions to one tool, side by side; the results come back with call 2."""
    requested = assistant(
        asks("mcp__city__weather", '{"city": "Oslo"}', "a"), asks("mcp__city__weather", '{"city":"Rome"}', "b")
    )
    back = [user("How is it?"), requested, result("rain", "a"), result("sun", "b")]
    return [make_call(1, [user("How is it?")], requested), make_call(2, back, "Rain and sun.")]


def ran(run: Run) -> list[tuple[str, int | None, int | None]]:
    return [(use.call.id or "", use.exchange, use.ran_ms) for use in run.tool_uses]


def served(exchange: int, city: object, at: int, name: str = "weather", ended_at: int | None = None) -> ServedToolCall:
    return ServedToolCall(exchange, name, {"city": city}, at, ended_at, "x")


def test_arguments_tell_parallel_calls_apart_whatever_their_order() -> None:
    run = build_run(calls(), (), [served(8, "Rome", 160, ended_at=195), served(9, "Oslo", 161)])
    assert ran(run) == [("a", 9, None), ("b", 8, 35)]


def test_a_served_call_before_the_request_or_after_the_result_does_not_match() -> None:
    run = build_run(calls(), (), [served(8, "Oslo", 10), served(9, "Oslo", 900)])
    assert ran(run) == [("a", None, None), ("b", None, None)]


def test_other_arguments_or_another_name_are_no_link() -> None:
    run = build_run(calls(), (), [served(8, "Oslo ", 160), served(9, "Oslo", 160, name="time"), served(7, 1, 160)])
    assert ran(run) == [("a", None, None), ("b", None, None)]


def test_one_served_call_is_paired_with_one_tool_call() -> None:
    twice = assistant(asks("weather", "{}", "a"), asks("weather", "{}", "b"))
    one = make_call(1, [user("Twice.")], twice)
    only = [ServedToolCall(8, "weather", {}, 160, 170)]
    assert ran(build_run([one], (), only)) == [("a", 8, 10), ("b", None, None)]
    both = [*only, ServedToolCall(9, "weather", {}, 165)]
    assert ran(build_run([one], (), both)) == [("a", 8, 10), ("b", 9, None)]
