"""Runs of real clients, reduced to their structure: turns, agents, messages between agents, side calls."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.clients.trees import EXPECTED, differences
from tests.support.trees import tree_of

from wiretape.model.run import Run
from wiretape.runs.run import build_run
from wiretape.tape.reading.reader import read_tape
from wiretape.wire.registry import decode

FOLDER = Path(__file__).parent / "clients"
NAMES = sorted(path.stem for path in FOLDER.glob("*.tape"))


def run_of(name: str) -> Run:
    return build_run(decode(read_tape(FOLDER / f"{name}.tape").exchanges))


@pytest.mark.parametrize("name", NAMES)
def test_the_tree_is_the_one_that_the_client_made(name: str) -> None:
    assert differences(name, tree_of(read_tape(FOLDER / f"{name}.tape").exchanges)) == []


def test_every_kind_of_client_is_there() -> None:
    assert set(NAMES) <= set(EXPECTED)
    assert {name.partition("-")[0] for name in EXPECTED} == {name.partition("-")[0] for name in NAMES} | {"dsh"}


def test_a_childs_own_id_says_which_of_two_parallel_tool_calls_started_it() -> None:
    run = run_of("claude-sub")
    started = {link.to_call: link.tool_index for link in run.links if link.kind == "started" and link.to_call}
    tasks = {call: str(run.steps[call - 1].call.request.messages) for call in started}
    assert {index: "CHILD-B" in tasks[call] for call, index in started.items()} == {0: False, 1: True}


def test_messages_between_agents_link_to_the_calls_that_receive_them() -> None:
    heard = [(link.kind, link.from_call, link.tool, link.to_call) for link in run_of("dsh-sub").links]
    assert heard == [
        ("started", 1, "subagent", 4),
        ("listed", 3, "list_agents", None),
        ("message", 5, "send_message", 10),
        ("report", 6, "report", 9),
        ("listed", 7, "list_agents", None),
        ("report", 11, "report", 13),
        ("closing", 12, None, 13),
    ]


def test_encrypted_messages_between_agents_are_linked_by_author() -> None:
    heard = [(link.kind, link.from_call, link.to_call) for link in run_of("codex-sub").links if link.kind != "listed"]
    assert heard == [
        ("started", 1, 3),
        ("message", 4, 6),
        ("closing", 6, 7),
        ("message", 7, 9),
        ("closing", 9, 10),
    ]


def test_a_subagents_router_is_a_side_call() -> None:
    run = run_of("gemini-sub")
    assert [(step.call.number, step.cause.call, step.agent) for step in run.side_calls] == [(1, 2, 0), (3, 4, 1)]


def test_one_question_to_several_agents_is_one_turn() -> None:
    run = run_of("py-langgraph-sub")
    assert [len(turn.steps) for turn in run.turns] == [5]
    assert run.turns[0].answer == "Hello."
    assert [(link.kind, link.to_call) for link in run.links] == [("result", 5), ("result", 5)]
    assert run.steps[4].cause.kind == "report"


def test_a_handoff_is_another_agent_that_answers_in_the_same_turn() -> None:
    run = run_of("py-agents-sub")
    assert [(agent.name, agent.origin) for agent in run.agents] == [
        ("root", "root"),
        ("ask_child", "subagent"),
        ("specialist", "handoff"),
    ]
    assert (len(run.turns), run.turns[0].answer) == (1, "Specialist: it is sunny in Paris.")
    assert run.threads[2].from_call == 4
    assert run.tool_uses[2].result_call == 5


def test_tool_calls_sent_back_as_plain_text_are_the_answer_that_was_given() -> None:
    run = run_of("py-smol-openai")
    assert run.steps[1].cause.kind == "tool_results"
    assert run.steps[1].cause.detail is None  # not "its answer was changed"
