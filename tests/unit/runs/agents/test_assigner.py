from __future__ import annotations

import json

from tests.support.calls import asks, assistant, make_call, result, system, tools, user

from wiretape.model.call import Message, ModelCall, ToolCall, ToolSpec
from wiretape.model.run import Agent, Run
from wiretape.runs.run import build_run

BOSS, WORKER = system("You lead the work and hand it out."), system("Worker: do as told, one sentence.")
GO = user("plan my week, please")
BOSS_TOOLS, WORKER_TOOLS = tools("delegate", "look"), tools("calendar")


def hand_out(*tasks: str, name: str = "delegate") -> Message:
    requested = (asks(name, json.dumps({"task": task}), f"id-{index}") for index, task in enumerate(tasks))
    return assistant(*requested)


def child(number: int, task: str, answer: str, **more: object) -> ModelCall:
    offers: tuple[ToolSpec, ...] = more.pop("offers", WORKER_TOOLS)  # type: ignore[assignment]
    return make_call(number, [WORKER, user(task)], answer, offers=offers, **more)  # type: ignore[arg-type]


def started(run: Run) -> list[tuple[str, int | None, int | None, str | None]]:
    return [(agent.name, agent.parent, agent.started_by, agent.basis) for agent in run.agents]


def test_a_child_is_linked_by_its_task_in_the_parents_arguments() -> None:
    ask = hand_out("look at monday")
    run = build_run(
        [
            make_call(1, [BOSS, GO], ask, offers=BOSS_TOOLS),
            child(2, "look at monday", "monday is free"),
            make_call(3, [BOSS, GO, ask, result("monday is free", "id-0")], "done", offers=BOSS_TOOLS),
        ]
    )
    assert started(run) == [("root", None, None, None), ("delegate", 0, 1, "data_flow")]
    assert run.tool_uses[0].agent == 1
    assert [step.turn for step in run.steps] == [1, 1, 1]


def test_parallel_children_of_one_prompt_are_different_agents() -> None:
    ask = hand_out("look at monday", "look at tuesday")
    run = build_run(
        [
            make_call(1, [BOSS, GO], ask, offers=BOSS_TOOLS),
            child(2, "look at tuesday", "OK"),
            child(3, "look at monday", "OK"),
        ]
    )
    assert [agent.name for agent in run.agents] == ["root", "delegate", "delegate #2"]
    assert [use.agent for use in run.tool_uses] == [2, 1]


def test_children_with_the_same_task_get_one_tool_call_each() -> None:
    run = build_run(
        [
            make_call(1, [BOSS, GO], hand_out("draw a card", "draw a card"), offers=BOSS_TOOLS),
            child(2, "draw a card", "seven"),
            child(3, "draw a card", "queen"),
        ]
    )
    assert [use.agent for use in run.tool_uses] == [1, 2]


def test_a_task_inside_a_longer_first_message_is_found() -> None:
    ask = hand_out("look at monday and say what is free")
    first = "Your task follows.\n\nlook at monday and say what is free\n\nAnswer in one sentence."
    run = build_run([make_call(1, [BOSS, GO], ask, offers=BOSS_TOOLS), child(2, first, "free")])
    assert started(run)[1] == ("delegate", 0, 1, "data_flow")


def test_a_short_task_is_enough_where_the_first_message_names_the_tool() -> None:
    ask = assistant(asks("scout", '{"task": "weather in Paris"}', "x"))
    long = "New task:\nYou're an agent named 'scout' and have been submitted this task.\n---\nweather in Paris\n---"
    run = build_run([make_call(1, [BOSS, GO], ask, offers=BOSS_TOOLS), child(2, long + " Be thorough." * 9, "sunny")])
    assert started(run)[1] == ("scout", 0, 1, "data_flow")


def test_arguments_passed_on_as_json_are_compared_as_json() -> None:
    ask = assistant(asks("delegate", '{"day": "monday", "hours": 3}', "x"))
    run = build_run([make_call(1, [BOSS, GO], ask, offers=BOSS_TOOLS), child(2, '{"hours":3,"day":"monday"}', "free")])
    assert started(run)[1] == ("delegate", 0, 1, "data_flow")


def test_an_answer_in_the_tools_result_links_a_child_without_a_task() -> None:
    ask = assistant(asks("weekly_report", "{}", "x"))
    run = build_run(
        [
            make_call(1, [BOSS, GO], ask, offers=BOSS_TOOLS),
            child(2, "Write the report of this week.", "Five meetings, two of them useful."),
            make_call(3, [BOSS, GO, ask, result("Five meetings, two of them useful.", "x")], "done", offers=BOSS_TOOLS),
        ]
    )
    assert started(run)[1] == ("weekly_report", 0, 1, "data_flow")


def test_an_argument_of_the_last_tool_is_an_answer_too() -> None:
    ask = assistant(asks("weekly_report", "{}", "x"))
    end = assistant(asks("final_answer", '{"answer": "Five meetings, two of them useful."}'))
    run = build_run(
        [
            make_call(1, [BOSS, GO], ask, offers=BOSS_TOOLS),
            make_call(2, [WORKER, user("Write the report.")], end, offers=WORKER_TOOLS),
            make_call(3, [BOSS, GO, ask, result("Five meetings, two of them useful.", "x")], "done", offers=BOSS_TOOLS),
        ]
    )
    assert started(run)[1] == ("weekly_report", 0, 1, "data_flow")


def test_children_of_children() -> None:
    ask, ask_on = hand_out("look at the week"), hand_out("look at monday", name="sub")
    run = build_run(
        [
            make_call(1, [BOSS, GO], ask, offers=BOSS_TOOLS),
            make_call(2, [WORKER, user("look at the week")], ask_on, offers=WORKER_TOOLS),
            make_call(3, [system("Reads one day."), user("look at monday")], "free", offers=tools("x")),
            make_call(4, [WORKER, user("look at the week"), ask_on, result("free", "id-0")], "ok", offers=WORKER_TOOLS),
            make_call(5, [BOSS, GO, ask, result("ok", "id-0")], "done", offers=BOSS_TOOLS),
        ]
    )
    assert [(agent.name, agent.parent) for agent in run.agents] == [("root", None), ("delegate", 0), ("sub", 1)]
    assert [(turn.number, len(turn.steps)) for turn in run.turns] == [(1, 5)]


def test_a_tool_call_that_was_not_answered_yet_when_a_thread_began_did_not_start_it() -> None:
    run = build_run(
        [
            make_call(1, [BOSS, GO], hand_out("look at monday"), offers=BOSS_TOOLS, at=0, ended_at=500),
            child(2, "look at monday", "free", at=100),
        ]
    )
    assert [agent.parent for agent in run.agents] == [None, None]


def test_a_tool_that_the_provider_ran_started_no_agent() -> None:
    search = assistant(ToolCall("s", "web_search", '{"q": "look at monday"}', "server"), "found")
    run = build_run([make_call(1, [BOSS, GO], search, offers=BOSS_TOOLS), child(2, "look at monday", "free")])
    assert [agent.parent for agent in run.agents] == [None, None]


def test_conversations_of_one_prompt_and_tools_are_one_root_agent() -> None:
    run = build_run([make_call(1, [BOSS, GO], "a"), make_call(2, [BOSS, user("something else")], "b")])
    assert started(run) == [("root", None, None, None)]
    assert [step.thread for step in run.steps] == [0, 1]
    assert [turn.user for turn in run.turns] == ["plan my week, please", "something else"]


def test_agents_that_differ_by_one_letter_of_their_prompts_are_two() -> None:
    """The same question, the same tools, the same answers, at the same time."""
    ask, said = assistant(asks("weather", '{"city": "Paris"}', "same")), user("What is the weather in Paris?")
    one, other = [system("CHILD-A weather"), said], [system("CHILD-B weather"), said]
    got = result("sunny", "same")  # the very same object in both histories
    run = build_run(
        [
            make_call(1, one, ask, offers=WORKER_TOOLS),
            make_call(2, other, ask, offers=WORKER_TOOLS),
            make_call(3, [*one, ask, got], "sunny", offers=WORKER_TOOLS),
            make_call(4, [*other, ask, got], "sunny", offers=WORKER_TOOLS),
            make_call(5, [system("JOIN"), said, assistant("sunny"), assistant("sunny")], "sunny, both say"),
        ]
    )
    assert [thread.calls for thread in run.threads] == [(1, 3), (2, 4), (5,)]
    assert [agent.name for agent in run.agents] == ["root", "root #2", "root #3"]
    assert [step.cause.detail for step in run.steps[2:4]] == [None, None]
    assert run.side_calls == ()


def test_two_root_agents_get_two_names() -> None:
    run = build_run([make_call(1, [BOSS, GO], "a", offers=BOSS_TOOLS), child(2, "something else", "b")])
    assert [agent.name for agent in run.agents] == ["root", "root #2"]


def test_names_never_clash_even_if_the_client_gives_numbers_itself() -> None:
    def spawned(number: int, name: str) -> ModelCall:
        told = {"thread_id": f"t{number}", "parent_thread_id": "p", "agent_name": name}
        return child(number, "see monday", "ok", headers={"x-codex-turn-metadata": json.dumps(told)})

    first = make_call(1, [BOSS, GO], "a", headers={"x-codex-turn-metadata": '{"thread_id": "p"}'})
    run = build_run([first, spawned(2, "scout #2"), spawned(3, "scout"), spawned(4, "scout"), spawned(5, "scout")])
    assert [agent.name for agent in run.agents] == ["root", "scout #2", "scout", "scout #3", "scout #4"]


# -- the client's own evidence -----------------------------------------------------------------------------------------

CLAUDE = {"x-claude-code-session-id": "s1"}
AGENT = {**CLAUDE, "x-claude-code-agent-id": "a1"}


def test_agent_headers_are_used_before_anything_is_inferred() -> None:
    """The client names child and parent; the texts alone would say nothing."""
    ask = assistant(asks("Agent", '{"prompt": "x"}', "t"))
    nested = {**CLAUDE, "x-claude-code-agent-id": "a2", "x-claude-code-parent-agent-id": "a1"}
    run = build_run(
        [
            make_call(1, [BOSS, GO], ask, offers=BOSS_TOOLS, headers=CLAUDE),
            child(2, "do it", "on my way", headers=AGENT),
            child(3, "another", "so be it", headers=nested),
        ]
    )
    assert started(run) == [("root", None, None, None), ("Agent", 0, 1, "header"), ("subagent", 1, 2, "header")]


def test_an_agent_id_in_a_tools_result_says_which_of_two_equal_tool_calls_started_it() -> None:
    ask = hand_out("draw a card", "draw a card", name="Agent")
    launched = [result(f"launched, agentId: {name}", f"id-{n}") for n, name in enumerate(["a-first-1", "a-second-2"])]
    run = build_run(
        [
            make_call(1, [BOSS, GO], ask, offers=BOSS_TOOLS, headers=CLAUDE),
            child(2, "draw a card", "queen", headers={**CLAUDE, "x-claude-code-agent-id": "a-second-2"}),
            child(3, "draw a card", "seven", headers={**CLAUDE, "x-claude-code-agent-id": "a-first-1"}),
            make_call(4, [BOSS, GO, ask, *launched], "drawn", offers=BOSS_TOOLS, headers=CLAUDE),
        ]
    )
    assert [use.agent for use in run.tool_uses] == [2, 1]


def test_children_that_only_share_a_session_are_still_found_by_their_task() -> None:
    run = build_run(
        [
            make_call(1, [BOSS, GO], hand_out("look at monday"), offers=BOSS_TOOLS, headers=CLAUDE),
            child(2, "look at monday", "free", headers=CLAUDE),
        ]
    )
    assert started(run)[1] == ("delegate", 0, 1, "data_flow")


def test_a_parents_session_header_links_a_child() -> None:
    ask = assistant(asks("task", '{"prompt": "monday?"}', "t"))
    run = build_run(
        [
            make_call(1, [BOSS, GO], ask, offers=BOSS_TOOLS, headers={"x-session-id": "p"}),
            child(2, "see monday", "free", headers={"x-session-id": "c", "x-parent-session-id": "p"}),
        ]
    )
    assert started(run)[1] == ("task", 0, 1, "header")


def test_a_session_id_in_a_tools_result_links_a_child_that_runs_in_the_background() -> None:
    ask = assistant(asks("subagent", '{"prompt": "monday?"}', "t"))
    own, other = {"x-deepseek-harness-session-id": "root-session"}, {"x-deepseek-harness-session-id": "0f3a-child"}
    history = [BOSS, GO, ask, result("started subagent 0f3a-child", "t")]
    run = build_run(
        [
            make_call(1, [BOSS, GO], ask, offers=BOSS_TOOLS, headers=own),
            child(2, "see monday", "free", headers=other),
            make_call(3, history, "it works on it", offers=BOSS_TOOLS, headers=own),
        ]
    )
    assert started(run)[1] == ("subagent", 0, 1, "header")


def test_turn_metadata_names_the_child_and_its_parent() -> None:
    def told(**metadata: str) -> dict[str, str]:
        return {"thread-id": metadata["thread_id"], "x-codex-turn-metadata": json.dumps(metadata)}

    ask = assistant(asks("collaboration.spawn_agent", '{"message": "?"}', "t"))
    spawned = told(thread_id="c", parent_thread_id="p", thread_source="subagent", agent_name="scout")
    run = build_run(
        [
            make_call(1, [BOSS, GO], ask, offers=BOSS_TOOLS, headers=told(thread_id="p", thread_source="user")),
            child(2, "see monday", "free", headers=spawned),
        ]
    )
    assert run.agents[1] == Agent(1, "scout", 0, 1, "collaboration.spawn_agent", "header", "subagent")


def test_a_childs_name_in_a_tools_result_says_what_started_it() -> None:
    """The task itself is encrypted, and another tool is at work when the child begins."""
    root, kid = '{"thread_id": "p"}', '{"thread_id": "c", "parent_thread_id": "p", "agent_name": "/root/survey"}'
    spawn, ls = assistant(asks("collaboration.spawn_agent", "{}", "1")), assistant(asks("list_agents", "{}", "2"))
    begun = [BOSS, GO, spawn, result('{"task_name":"/root/survey"}', "1")]
    run = build_run(
        [
            make_call(1, [BOSS, GO], spawn, offers=BOSS_TOOLS, headers={"x-codex-turn-metadata": root}),
            make_call(2, begun, ls, offers=BOSS_TOOLS, headers={"x-codex-turn-metadata": root}),
            child(3, "(encrypted)", "done", headers={"x-codex-turn-metadata": kid}),
        ]
    )
    assert run.agents[1] == Agent(1, "/root/survey", 0, 1, "collaboration.spawn_agent", "header", "subagent")


def test_nonsense_headers_are_ignored() -> None:
    run = build_run([make_call(1, [BOSS, GO], "a", headers={"x-codex-turn-metadata": "{broken"})])
    assert started(run) == [("root", None, None, None)]
