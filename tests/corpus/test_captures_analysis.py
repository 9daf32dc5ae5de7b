"""The analysis of the tapes in captures/."""

from __future__ import annotations

from pathlib import Path

import pytest

from wiretape.analyze.report import StatsReport
from wiretape.analyze.stats import stats
from wiretape.runs.run import build_run
from wiretape.tape.reading.reader import read_tape
from wiretape.wire.registry import decode

CAPTURES = Path(__file__).parents[2] / "captures"
FIRST = "first call of the turn: the user's message"


def report(name: str) -> StatsReport:
    return stats(build_run(decode(read_tape(CAPTURES / f"{name}.tape").exchanges)))


@pytest.mark.parametrize(
    ("name", "turns", "calls", "tool_calls", "agents"),
    [
        ("subagents", 1, 4, 2, 2),
        ("weather-no-tool", 1, 1, 0, 1),
        ("weather-one-tool", 2, 3, 1, 1),
        ("route-two-tools", 1, 3, 2, 1),
        ("introduction", 1, 1, 0, 1),
        ("clock-thinking", 1, 2, 1, 1),
        ("subagent-control", 1, 16, 9, 2),
        ("subagent-control-resumed", 1, 8, 4, 2),
    ],
)
def test_turns_calls_tools_and_agents(name: str, turns: int, calls: int, tool_calls: int, agents: int) -> None:
    found = report(name)
    assert (len(found.turns), found.calls, found.tool_calls, found.agents) == (turns, calls, tool_calls, agents)
    assert found.side_calls == []


def test_why_the_subagents_took_four_calls() -> None:
    assert [(step.agent, step.why) for step in report("subagents").turns[0].steps] == [
        ("root", FIRST),
        (
            "schedule_event",
            "first call of subagent schedule_event, started by call 1 (inferred from what flowed between them)",
        ),
        ("schedule_event", "answers create_calendar_event from call 2"),
        ("root", "answers schedule_event from call 1"),
    ]


def test_the_clock_that_breaks_the_cache_is_reported() -> None:
    found = report("weather-one-tool")
    assert [turn.calls for turn in found.turns] == [1, 2]
    assert [(finding.kind, finding.call) for finding in found.findings] == [("prefix_break", 2)]
    assert "messages[0].content, character 19: a clock: '15时05分30秒' became '15时23分47秒'" in found.findings[0].text


def test_a_correct_thinking_history_has_no_findings() -> None:
    found = report("clock-thinking")
    assert found.findings == []
    first = found.turns[0].steps[0].usage
    assert first is not None
    assert (first.input, first.cached, first.output, first.reasoning) == (316, 256, 86, 37)
