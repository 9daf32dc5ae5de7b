"""Subagents stand under the call that started them, whatever the order of concurrent calls."""

from __future__ import annotations

from tests.support.views import step

from wiretape.analyze.report import AgentReport, CallReport, UsageSum
from wiretape.views.stats.agents import tree

NOTHING = UsageSum(unknown_calls=0)


def agents(*started: tuple[str, str | None, int | None]) -> list[AgentReport]:
    return [
        AgentReport(name=name, calls=1, tool_calls=0, usage=NOTHING, parent=parent, started_by=call)
        for name, parent, call in started
    ]


def drawn(steps: list[CallReport], known: list[AgentReport]) -> list[tuple[int, int]]:
    return [(place.step.call, place.depth) for place in tree(steps, known)]


def test_concurrent_subagents_are_kept_apart() -> None:
    steps = [
        step(1),
        step(2, "weather", kind="subagent", cause_call=1),
        step(3, "route", kind="subagent", cause_call=1),
        step(4, "weather", kind="tool_results", cause_call=2),
        step(5, "route", kind="tool_results", cause_call=3),
        step(6, kind="tool_results", cause_call=1),
    ]
    known = agents(("root", None, None), ("weather", "root", 1), ("route", "root", 1))
    assert drawn(steps, known) == [(1, 0), (2, 1), (4, 1), (3, 1), (5, 1), (6, 0)]


def test_a_subagent_of_a_subagent_stands_deeper() -> None:
    steps = [
        step(1),
        step(2, "a", kind="subagent", cause_call=1),
        step(3, "b", kind="subagent", cause_call=2),
        step(4, "a", kind="tool_results", cause_call=2),
    ]
    assert drawn(steps, agents(("root", None, None), ("a", "root", 1), ("b", "a", 2))) == [
        (1, 0),
        (2, 1),
        (3, 2),
        (4, 1),
    ]


def test_a_subagent_woken_again_stands_under_the_call_that_woke_it() -> None:
    steps = [
        step(1),
        step(2, "child", kind="subagent", cause_call=1),
        step(3, kind="tool_results", cause_call=1),
        step(4, "child", kind="subagent", cause_call=3),
    ]
    assert drawn(steps, agents(("root", None, None), ("child", "root", 1))) == [(1, 0), (2, 1), (3, 0), (4, 1)]


def test_a_subagent_started_in_an_earlier_turn_keeps_its_place_in_time() -> None:
    steps = [step(5), step(6, "child", kind="continuation"), step(7)]
    assert drawn(steps, agents(("root", None, None), ("child", "root", 1))) == [(5, 0), (6, 0), (7, 0)]


def test_a_wrong_link_loses_no_call() -> None:
    steps = [step(1, kind="subagent", cause_call=2), step(2, "b", kind="subagent", cause_call=1)]
    assert sorted(call for call, _ in drawn(steps, agents(("root", None, 2), ("b", "root", 1)))) == [1, 2]


def test_a_report_does_not_move_the_agent_that_hears_it() -> None:
    steps = [
        step(1),
        step(2, "child", kind="subagent", cause_call=1),
        step(3, kind="report", cause_call=2),
    ]
    assert drawn(steps, agents(("root", None, None), ("child", "root", 1))) == [(1, 0), (2, 1), (3, 0)]


def test_who_was_handed_a_conversation_stands_under_the_call_that_handed_it_over() -> None:
    steps = [step(1), step(2, "billing", kind="handoff", cause_call=1), step(3, "billing", cause_call=2)]
    assert drawn(steps, agents(("root", None, None), ("billing", "root", 1))) == [(1, 0), (2, 1), (3, 1)]
