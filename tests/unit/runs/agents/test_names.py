from __future__ import annotations

from typing import Any

import pytest
from tests.support.calls import asks, make_call, user

from wiretape.model.call import ToolResult
from wiretape.runs.agents.assigner import AgentDraft
from wiretape.runs.agents.names import AgentNames, rows
from wiretape.runs.caller_headers import NOBODY, Identity
from wiretape.runs.tools import RequestedTool


def agent(number: int, answered: str | None = None, arguments: str = "{}", **who: Any) -> tuple[AgentDraft, Identity]:
    made = AgentDraft(make_call(number, [user("go")], "done"), number=number)
    if answered is not None:
        made.use = RequestedTool(
            1, 0, asks("subagent", arguments, f"call-{number}"), 0, 0, ToolResult(None, None, answered)
        )
        made.use.agent = number
    return made, Identity(**who) if who else NOBODY


def names(*known: tuple[AgentDraft, Identity]) -> AgentNames:
    return AgentNames([one for one, _ in known], {one.first_call.number: who for one, who in known})


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        ("started subagent 5e1d0c3a-77b2", "5e1d0c3a-77b2"),
        ("launched.\nagentId: ab71d1cb87 (internal)", "ab71d1cb87"),
        ('{"task_name":"/root/survey"}', "/root/survey"),
        ("task_id: general-purpose-call_0_1 (do not tell)", "general-purpose-call_0_1"),
        ('<task id="ses_dd5c37fc0" state="completed">', "ses_dd5c37fc0"),
    ],
)
def test_an_id_that_a_tool_gives_out_names_the_agent_that_it_started(answer: str, name: str) -> None:
    child = agent(1, answer)
    known = names(agent(0), child)
    assert known.called(name) is child[0]
    assert known.named_in(f"Agent {name}, working, says: hello.") == [child[0]]


def test_plain_words_in_a_tools_result_name_no_agent() -> None:
    assert names(agent(1, "The agent is working on the task now")).named_in("an agent is working") == []


def test_a_client_names_its_agents_in_headers() -> None:
    child = agent(1, name="/root/survey", session="thread-0001")
    known = names(child)
    assert known.called("survey") is known.called("/root/survey") is known.called("thread-0001") is child[0]
    assert known.named_in("a survey of the town") == []  # too short a name to be one inside a text


def test_arguments_address_an_agent_by_a_value_of_its_own() -> None:
    child = agent(1, "started subagent child-0001")
    known = names(child)
    assert known.addressed('{"to": "child-0001", "message": "hello"}') is child[0]
    assert known.addressed('{"message": "tell child-0001 hello"}') is None


def test_the_id_of_the_tool_call_names_the_agent_in_a_notification() -> None:
    child = agent(1, "launched")
    assert names(child).named_in("<tool-use-id>call-1</tool-use-id>") == [child[0]]


def test_a_name_of_two_agents_identifies_neither() -> None:
    assert (
        names(agent(1, "started subagent child-0001"), agent(2, "started subagent child-0001")).called("child-0001")
        is None
    )


@pytest.mark.parametrize(
    ("text", "listed"),
    [
        ("a-1 [running] — reads\na-2 [complete] — counts", [("a-1", "running"), ("a-2", "complete")]),
        ("a-3 [diagnostic: corrupt]", [("a-3", "diagnostic: corrupt")]),
        ("(no subagents)", []),
        ('{"agents":[{"agent_name":"/root","agent_status":"running"}]}', [("/root", "running")]),
        ('[{"task_id": "t-1", "status": {"completed": "done"}}]', [("t-1", "completed")]),
        ('{"agents": 3}', []),
    ],
)
def test_lists_of_agents(text: str, listed: list[tuple[str, str]]) -> None:
    assert list(rows(text)) == listed
