"""The analysis places every call of any tape, and its figures agree with one another."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.calls import make_call, tools

from wiretape.analyze.cache.diagnosis import diagnose
from wiretape.analyze.cache.report import CacheReport
from wiretape.analyze.report import StatsReport
from wiretape.analyze.stats import stats
from wiretape.analyze.tool_costs import tool_costs
from wiretape.model.call import (
    Block,
    Control,
    Media,
    Message,
    ModelCall,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
    Usage,
)
from wiretape.runs.run import build_run

# Few values, so that calls collide in every way: equal texts, ids, tools, sessions.
texts = st.sampled_from(
    [
        "",
        "a",
        "hi",
        "look at monday, please",
        "started subagent child-0001",
        "child-0001 [running] - look at monday, please",
        "Background subagent child-0001 reported: look at monday, please",
        "<task-notification><task-id>child-0001</task-id></task-notification>",
        "error: not delivered",
        "Calling tools:\n[{'function': {'name': 'look', 'arguments': {}}}]",
        "<system-reminder>x</system-reminder>",
        "Observation: 1",
        "[SUGGESTION MODE: x]",
    ]
)
ids = st.sampled_from([None, "1", "2"])
names = st.sampled_from(
    ["look", "ask", "subagent", "subagent_fork", "send_message", "list_agents", "interrupt_agent", "transfer_to_x"]
)
MESSAGE = '{"id": "child-0001", "message": "look at monday, please"}'
arguments = st.sampled_from(
    [MESSAGE, "", "{}", '{"q": "look at monday, please"}', '{"q": ', "[1, NaN]", '"hi"', '{"n": 1e999}']
)
tool_kinds = st.sampled_from(["function", "custom", "server"])
blocks: st.SearchStrategy[Block] = st.one_of(
    st.builds(Text, texts),
    st.builds(Reasoning, texts),
    st.builds(ToolCall, ids, names, arguments, tool_kinds),
    st.builds(ToolResult, ids, st.none() | names, texts, kind=tool_kinds),
    st.builds(Media, st.just("image"), st.just({"n": 10**30})),
    st.builds(Unknown, st.just("odd"), st.just([1])),
    st.builds(Control, st.just("compaction"), st.sampled_from([{}, {"encrypted_content": "g"}, {"content": None}])),
)
roles = st.sampled_from(["system", "user", "assistant", "tool", "agent", "critic"])
messages = st.lists(st.builds(Message, roles, st.lists(blocks, max_size=2).map(tuple)), max_size=4)
headers = st.dictionaries(
    st.sampled_from(["x-session-id", "x-parent-session-id", "x-claude-code-agent-id", "x-stainless-retry-count"]),
    st.sampled_from(["1", "2", "{}"]),
    max_size=2,
)
usages = st.none() | st.builds(Usage, st.none() | st.integers(0, 9), st.none() | st.integers(0, 9))


@st.composite
def tapes(draw: st.DrawFn) -> list[ModelCall]:
    history: list[list[Message]] = [[]]
    calls = []
    for number in range(1, draw(st.integers(0, 8)) + 1):
        asked = [*draw(st.sampled_from(history)), *draw(messages)]
        answer = draw(messages)
        history += [asked, [*asked, *answer]]
        more: dict[str, Any] = draw(
            st.fixed_dictionaries(
                {
                    "status": st.sampled_from([200, 200, 429]),
                    "complete": st.booleans(),
                    "kind": st.sampled_from(["inference", "inference", "inference", "token_count", "prewarm"]),
                    "headers": headers,
                    "id": ids,
                    "previous": ids,
                    "usage": usages,
                    "offers": st.sampled_from([(), tools("look"), tools("ask")]),
                    "ended_at": st.integers(number * 100, 1000),
                }
            )
        )
        calls.append(make_call(number, asked, answer, **more))
    return calls


@settings(max_examples=100, deadline=None)
@given(tapes())
def test_every_call_has_its_place(calls: list[ModelCall]) -> None:
    run = build_run(calls, [99])
    assert [step.call.number for step in run.steps] == [call.number for call in calls]
    beside = {step.call.number for step in run.side_calls}
    in_turns = [step.call.number for turn in run.turns for step in turn.steps]
    in_threads = [number for thread in run.threads for number in thread.calls]
    inferences = [call.number for call in calls if call.number not in beside]
    assert sorted(in_turns) == sorted(in_threads) == inferences
    for step in run.steps:
        assert run.threads[step.thread].number == step.thread
        assert run.threads[step.thread].agent == step.agent == run.agents[step.agent].number
        assert 0 <= step.new_from <= len(step.call.request.messages)
        assert step.cause.call is None or step.cause.kind == "side_call" or step.cause.call < step.call.number
    for agent in run.agents:
        assert agent.parent is None or agent.parent < agent.number
    for use in run.tool_uses:
        assert use.result_call is None or use.result_call >= use.call_number
    assert len({agent.name for agent in run.agents}) == len(run.agents)
    agents = {None, *range(len(run.agents))}
    for link in run.links:
        assert {link.from_agent, link.to_agent} <= agents
        assert link.kind == "interrupted" or (link.from_call or 0) < (link.to_call or 1000)
        assert link.from_call is None or run.steps[link.from_call - 1].agent == link.from_agent
        assert link.to_call is None or run.steps[link.to_call - 1].agent == link.to_agent
        assert link.to_call is None or link in run.steps[link.to_call - 1].links
    assert sum(len(step.links) for step in run.steps) == len([link for link in run.links if link.to_call is not None])


@settings(max_examples=100, deadline=None)
@given(tapes())
def test_the_figures_agree(calls: list[ModelCall]) -> None:
    report = stats(build_run(calls))
    assert report.calls == sum(turn.calls for turn in report.turns) + len(report.side_calls) == len(calls)
    assert report.calls == sum(agent.calls for agent in report.by_agent) == sum(m.calls for m in report.by_model)
    assert report.tool_calls == sum(agent.tool_calls for agent in report.by_agent)
    assert (report.usage.input or 0) == sum(agent.usage.input or 0 for agent in report.by_agent)
    assert all(step.why for turn in report.turns for step in turn.steps)
    assert StatsReport.model_validate_json(report.model_dump_json()) == report


@settings(deadline=None)
@given(tapes())
def test_every_prompt_gets_one_verdict_and_every_tool_its_costs(calls: list[ModelCall]) -> None:
    run = build_run(calls)
    report = diagnose(run)
    assert [one.call for one in report.calls] == [c.number for c in calls if c.kind in ("inference", "prewarm")]
    assert sum(report.verdicts.values()) == len(report.calls)
    assert all(one.text and (one.breaks or one.verdict != "broken") for one in report.calls)
    assert all(one.compared_with is None or one.compared_with < one.call for one in report.calls)
    assert CacheReport.model_validate_json(report.model_dump_json()) == report
    costs = {one.tool: one for one in tool_costs(run).tools}
    assert sum(one.calls for one in costs.values()) == len(run.tool_uses)
    assert costs.keys() >= {use.call.name for use in run.tool_uses}
