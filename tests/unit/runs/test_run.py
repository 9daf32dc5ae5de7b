"""Turns, causes, side calls: the run as a whole."""

from __future__ import annotations

import json

from tests.support.calls import asks, assistant, make_call, result, system, tools, user

from wiretape.model.call import Message, Text, ToolResult
from wiretape.model.run import Cause, Run
from wiretape.runs.run import build_run

S, T = system("You are the weather's agent."), tools("weather")
Q, ASK = user("how is the weather?"), assistant(asks("weather", '{"city": "成都"}'))
GOT = result("cloudy", name="weather")


def kinds(run: Run) -> list[tuple[str, int | None]]:
    return [(step.cause.kind, step.cause.call) for step in run.steps]


def turns(run: Run) -> list[tuple[str, list[int], str | None]]:
    return [(turn.user, [step.call.number for step in turn.steps], turn.answer) for turn in run.turns]


def test_nothing_was_called() -> None:
    assert build_run([], [1, 2]) == Run((), (), (), (), (), (), (1, 2))


def test_a_turn_is_the_users_not_a_call() -> None:
    history = [S, Q, ASK, GOT, assistant("cloudy, 18 degrees")]
    run = build_run(
        [
            make_call(1, [S, Q], ASK, offers=T),
            make_call(2, history[:4], "cloudy, 18 degrees", offers=T),
            make_call(3, [*history, user("and tomorrow?")], "the same", offers=T),
        ]
    )
    assert turns(run) == [
        ("how is the weather?", [1, 2], "cloudy, 18 degrees"),
        ("and tomorrow?", [3], "the same"),
    ]
    assert kinds(run) == [("turn_start", None), ("tool_results", 1), ("turn_start", 2)]
    assert run.steps[1].cause == Cause("tool_results", 1, ("weather",))


def test_turns_that_are_only_history_are_not_listed() -> None:
    run = build_run([make_call(1, [S, user("who are you?"), assistant("an agent"), Q], ASK, offers=T)])
    assert turns(run) == [("how is the weather?", [1], None)]


def test_a_tape_that_begins_in_the_middle_of_a_turn() -> None:
    run = build_run([make_call(1, [S, Q, ASK, GOT], "cloudy", offers=T)])
    assert turns(run) == [("how is the weather?", [1], "cloudy")]
    assert run.steps[0].cause.detail == "the tape begins in the middle of the turn"


def test_tool_results_and_reminders_in_user_messages_start_no_turn() -> None:
    back = Message("user", (ToolResult(None, "weather", "cloudy"), Text("<system-reminder>be brief</system-reminder>")))
    notice = user("<task-notification>done</task-notification>")
    run = build_run(
        [
            make_call(1, [S, Q], ASK, offers=T),
            make_call(2, [S, Q, ASK, back], "cloudy", offers=T),
            make_call(3, [S, Q, ASK, back, assistant("cloudy"), notice], "noted", offers=T),
        ]
    )
    assert turns(run) == [("how is the weather?", [1, 2, 3], "noted")]
    assert kinds(run)[2] == ("continuation", 2)


def test_tool_results_that_travel_as_plain_text_start_no_turn() -> None:
    history = [S, Q, assistant("Calling tools: weather"), user("Observation:\ncloudy")]
    run = build_run([make_call(1, [S, Q], "Calling tools: weather"), make_call(2, history, "cloudy")])
    assert turns(run) == [("how is the weather?", [1, 2], "cloudy")]
    assert run.steps[1].cause == Cause("tool_results", 1, (), detail="as plain text")


def test_a_retry_belongs_to_the_turn_and_shows_what_the_failed_call_wanted_to_add() -> None:
    history = [S, Q, assistant("cloudy"), user("and tomorrow?")]
    run = build_run(
        [
            make_call(1, [S, Q], "cloudy"),
            make_call(2, history, status=429),
            make_call(3, history, "the same"),
        ]
    )
    assert turns(run)[1] == ("and tomorrow?", [2, 3], "the same")
    assert kinds(run)[2] == ("retry", 2)
    assert [step.new_from for step in run.steps] == [0, 3, 3]


def test_turns_of_two_conversations_may_interleave() -> None:
    one, other = [S, user("one")], [S, user("other")]
    run = build_run(
        [
            make_call(1, one, ASK, offers=T),
            make_call(2, other, ASK, offers=T),
            make_call(3, [*one, ASK, GOT], "1", offers=T),
            make_call(4, [*other, ASK, GOT], "2", offers=T),
        ]
    )
    assert turns(run) == [("one", [1, 3], "1"), ("other", [2, 4], "2")]


def test_an_answer_that_was_cut_at_its_limit_goes_on() -> None:
    run = build_run([make_call(1, [S, Q], "it is"), make_call(2, [S, Q, assistant("it is")], "cloudy")])
    assert kinds(run) == [("turn_start", None), ("continuation", 1)]
    assert turns(run) == [("how is the weather?", [1, 2], "cloudy")]


# -- agents that talk to one another ----------------------------------------------------------------------------------


def test_a_message_to_a_subagent_is_its_next_turn_and_a_report_to_the_parent_is_no_users_words() -> None:
    """`send_message` drives the child; what it reports reaches the parent as a user message."""
    root, kid = {"x-deepseek-harness-session-id": "root-id"}, {"x-deepseek-harness-session-id": "child-id"}
    offers = tools("subagent", "send_message")
    spawn = assistant(asks("subagent", json.dumps({"prompt": "read the plan and report"}), "t1"))
    begun = [S, Q, spawn, result("started subagent child-id", "t1")]
    send = assistant(
        asks("send_message", json.dumps({"subagent_id": "child-id", "message": "now the budget too"}), "t2")
    )
    report = [*begun, assistant("waiting"), user("Report of child-id: the plan has three parts")]
    work = [system("child"), user("read the plan and report")]
    run = build_run(
        [
            make_call(1, [S, Q], spawn, offers=offers, headers=root),
            make_call(2, begun, "waiting", offers=offers, headers=root),
            make_call(3, work, "the plan has three parts", offers=T, headers=kid),
            make_call(4, report, send, offers=offers, headers=root),
            make_call(
                5,
                [*work, assistant("the plan has three parts"), user("now the budget too")],
                "the budget is short",
                offers=T,
                headers=kid,
            ),
        ]
    )
    assert turns(run) == [("how is the weather?", [1, 2, 3, 4, 5], None)]
    assert run.steps[3].cause == Cause("report", 3, (), "id")
    assert run.steps[4].cause == Cause("subagent", 4, ("send_message",), "id", "a message from its parent")


def test_a_notice_of_the_harness_that_holds_a_subagents_answer_is_a_report() -> None:
    session, kid = {"x-claude-code-session-id": "s"}, {"x-claude-code-session-id": "s", "x-claude-code-agent-id": "a"}
    ask = assistant(asks("Agent", json.dumps({"prompt": "read the plan"}), "t1"))
    begun = [S, Q, ask, result("the agent works in the background", "t1")]
    notice = user("<task-notification>done: the plan has three parts</task-notification>")
    run = build_run(
        [
            make_call(1, [S, Q], ask, offers=T, headers=session),
            make_call(2, begun, "waiting", offers=T, headers=session),
            make_call(3, [S, user("read the plan")], "the plan has three parts", offers=T, headers=kid),
            make_call(4, [*begun, assistant("waiting"), notice], "three parts", offers=T, headers=session),
        ]
    )
    assert turns(run) == [("how is the weather?", [1, 2, 3, 4], "three parts")]
    assert run.steps[3].cause == Cause("report", 3, (), "data_flow")


# -- side calls ------------------------------------------------------------------------------------------------------

TITLE = system("You name conversations: give a title of at most five words.")


def test_a_title_call_is_a_side_call() -> None:
    run = build_run(
        [
            make_call(1, [TITLE, user("how is the weather?")], "Weather"),
            make_call(2, [S, Q], ASK, offers=T),
            make_call(3, [S, Q, ASK, GOT], "cloudy", offers=T),
        ]
    )
    assert [step.call.number for step in run.side_calls] == [1]
    assert run.steps[0].cause == Cause("side_call", 2, detail="title")
    assert turns(run) == [("how is the weather?", [2, 3], "cloudy")]
    assert len(run.agents) == 1
    assert (run.steps[0].agent, run.steps[0].turn) == (0, None)


def test_a_router_call_before_the_loop() -> None:
    router = system("Classify the task's complexity: flash or pro.")
    run = build_run([make_call(1, [router, Q], "flash"), make_call(2, [S, Q], "cloudy", offers=T)])
    assert run.steps[0].cause == Cause("side_call", 2, detail="router")


def test_a_summary_by_another_prompt_is_aside_and_the_conversation_goes_on_from_it() -> None:
    summary = "The user asked for the weather in 成都, which is cloudy; tomorrow was asked for, too."
    summariser = system("You are a helpful assistant tasked with summarizing conversations.")
    run = build_run(
        [
            make_call(1, [S, Q], "cloudy", offers=T),
            make_call(2, [summariser, Q, assistant("cloudy"), user("Sum up the conversation.")], summary),
            make_call(3, [S, user(f"So far: {summary}"), user("and tomorrow?")], "the same", offers=T),
        ]
    )
    assert kinds(run) == [("turn_start", None), ("side_call", 1), ("turn_start", 2)]
    assert run.steps[1].cause.detail == "summary"
    assert [(thread.calls, thread.from_call) for thread in run.threads] == [((1,), None), ((3,), 2)]
    assert [agent.name for agent in run.agents] == ["root"]
    assert turns(run) == [("how is the weather?", [1], "cloudy"), ("and tomorrow?", [3], "the same")]


def test_a_history_that_is_summed_up_within_a_turn_stays_in_it() -> None:
    summary = "The user asked for the weather in 成都, which is cloudy; the forecast is still to be read."
    ask = [S, Q, ASK, GOT, user("<system-reminder>Sum up.</system-reminder>")]
    run = build_run(
        [
            make_call(1, [S, Q], ASK, offers=T),
            make_call(2, ask, summary, offers=T),
            make_call(3, [S, user(f"So far: {summary}\nGo on.")], "cloudy", offers=T),
        ]
    )
    assert turns(run) == [("how is the weather?", [1, 2, 3], "cloudy")]
    assert kinds(run)[2] == ("continuation", 2)


def test_a_report_that_comes_late_belongs_to_the_turn_in_which_it_is_heard() -> None:
    session, kid = {"x-claude-code-session-id": "s"}, {"x-claude-code-session-id": "s", "x-claude-code-agent-id": "a"}
    ask = assistant(asks("Agent", json.dumps({"prompt": "read the plan"}), "t1"))
    first = [S, Q, ask, result("the agent works in the background", "t1")]
    second = [*first, assistant("waiting"), user("meanwhile, sing")]
    notice = user("<task-notification>done: the plan has three parts</task-notification>")
    run = build_run(
        [
            make_call(1, [S, Q], ask, offers=T, headers=session),
            make_call(2, first, "waiting", offers=T, headers=session),
            make_call(3, second, "la la", offers=T, headers=session),
            make_call(4, [S, user("read the plan")], "the plan has three parts", offers=T, headers=kid),
            make_call(5, [*second, assistant("la la"), notice], "three parts", offers=T, headers=session),
        ]
    )
    assert [(turn.user, [step.call.number for step in turn.steps]) for turn in run.turns] == [
        ("how is the weather?", [1, 2, 4]),
        ("meanwhile, sing", [3, 5]),
    ]


def test_a_single_call_in_the_same_session_is_a_side_call() -> None:
    session = {"x-claude-code-session-id": "s"}
    run = build_run(
        [
            make_call(1, [system("x"), user("quota")], "q", headers=session),
            make_call(2, [S, Q], "cloudy", offers=T, headers=session),
        ]
    )
    assert run.steps[0].cause == Cause("side_call", 2, detail="one request without tools")


def test_a_subagent_without_tools_is_not_a_side_call() -> None:
    ask = assistant(asks("expert", json.dumps({"question": "how is the weather in 成都 today?"}), "x"))
    run = build_run(
        [
            make_call(1, [S, Q], ask, offers=T),
            make_call(2, [system("An expert."), user("how is the weather in 成都 today?")], "cloudy, as ever"),
            make_call(3, [S, Q, ask, result("cloudy, as ever", "x")], "cloudy", offers=T),
        ]
    )
    assert run.side_calls == ()
    assert [agent.name for agent in run.agents] == ["root", "expert"]


def test_an_agent_without_tools_and_with_another_task_is_not_a_side_call() -> None:
    run = build_run([make_call(1, [S, Q], "cloudy", offers=T), make_call(2, [system("x"), user("write a poem")], "oh")])
    assert run.side_calls == ()
    assert len(run.turns) == 2


def test_plain_conversations_without_tools_are_turns() -> None:
    run = build_run([make_call(1, [user("hi")], "hello"), make_call(2, [user("hi")], "hey")])
    assert turns(run) == [("hi", [1], "hello"), ("hi", [2], "hey")]
    assert run.steps[1].cause.detail == "the same request as call 1"


def test_a_side_call_of_a_harness_does_not_change_the_thread() -> None:
    """A suggestion of what the user may say next goes on from the very history, with all tools, and leads nowhere."""
    requested = [S, Q, assistant("It is sunny.")]
    run = build_run(
        [
            make_call(1, [S, Q], "It is sunny.", offers=T),
            make_call(
                2, [*requested, user("[SUGGESTION MODE: what might the user say next?]")], "and tomorrow?", offers=T
            ),
            make_call(3, [*requested, user("and in Rome?")], "It rains.", offers=T),
        ]
    )
    assert [(step.call.number, step.cause.call, step.cause.detail) for step in run.side_calls] == [(2, 1, "suggestion")]
    assert [thread.calls for thread in run.threads] == [(1, 3)]
    assert [turn.user for turn in run.turns] == ["how is the weather?", "and in Rome?"]


def test_a_title_call_in_a_subagents_session_is_not_a_subagent() -> None:
    parent = {"x-session-id": "ses_parent"}
    child = {"x-session-id": "ses_child", "x-parent-session-id": "ses_parent"}
    ask = assistant(asks("task", json.dumps({"prompt": "read the plan"}), "t1"))
    run = build_run(
        [
            make_call(1, [S, Q], ask, offers=T, headers=parent),
            make_call(2, [TITLE, user("read the plan")], "The plan", headers=child),
            make_call(3, [S, user("read the plan")], "three parts", offers=T, headers=child),
        ]
    )
    assert [step.call.number for step in run.side_calls] == [2]
    assert [step.agent for step in run.steps] == [0, 1, 1]
    assert len(run.agents) == 2


def test_token_counts_are_side_calls() -> None:
    run = build_run(
        [
            make_call(1, [S, Q], kind="token_count", offers=T),
            make_call(2, [S, Q], "cloudy", offers=T),
            make_call(3, [S, Q], kind="token_count", offers=T),
        ]
    )
    assert kinds(run) == [("side_call", 2), ("turn_start", None), ("side_call", 2)]
    assert run.threads[0].calls == (2,)


def test_a_tape_of_embeddings_alone() -> None:
    run = build_run([make_call(n, [user("x")], kind="embedding") for n in (1, 2)])
    assert kinds(run) == [("side_call", None), ("side_call", None)]
    assert [agent.name for agent in run.agents] == ["root"]
    assert {step.thread for step in run.steps} == {0}
