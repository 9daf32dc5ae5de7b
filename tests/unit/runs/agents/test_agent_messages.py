"""Messages between agents, and the calls that receive them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tests.support.calls import asks, assistant, make_call, result, system, tools, user

from wiretape.model.call import Message, ModelCall, Text, Unknown
from wiretape.model.run import Link, Run
from wiretape.runs.run import build_run

BOSS, WORKER = system("You lead the work and hand it out."), system("Worker: do as told, one sentence.")
OFFERS = tools("subagent", "send_message", "list_agents", "interrupt_agent")
GO = user("plan my week, please")
START = assistant(asks("subagent", '{"prompt": "look at monday, and tell me"}', "t1"))
STARTED = result("started subagent child-0001", "t1")
TASK = user("look at monday, and tell me")


def boss(number: int, history: Sequence[Message], answer: Message | str, **more: int) -> ModelCall:
    return make_call(number, [BOSS, GO, *history], answer, offers=OFFERS, at=more.get("at"), ended_at=more.get("end"))


def worker(number: int, history: Sequence[Message], answer: Message | str, **more: int) -> ModelCall:
    at, end = more.get("at"), more.get("end")
    return make_call(number, [WORKER, TASK, *history], answer, offers=tools("report"), at=at, ended_at=end)


def sends(*messages: str, to: str = "child-0001", tool: str = "send_message") -> Message:
    requested = (json.dumps({"subagent_id": to, "message": message}) for message in messages)
    return assistant(*(asks(tool, arguments, f"s{n}") for n, arguments in enumerate(requested)))


def links(run: Run, *kinds: str) -> list[Link]:
    return [link for link in run.links if link.kind in kinds]


def ways(run: Run, *kinds: str) -> list[tuple[str, int | None, int | None, str, str]]:
    return [(x.kind, x.from_call, x.to_call, x.basis, x.certainty) for x in links(run, *kinds)]


BEGUN = [boss(1, [], START), boss(2, [START, STARTED], "waiting")]
WAITING = [START, STARTED, assistant("waiting")]


def test_a_last_answer_reaches_the_parent_as_a_separate_message() -> None:
    said = user("Subagent child-0001 is done and says:\nmonday is free")
    run = build_run([*BEGUN, worker(3, [], "monday is free"), boss(4, [*WAITING, said], "good")])
    assert ways(run, "closing") == [("closing", 3, 4, "id", "certain")]
    assert [len(turn.steps) for turn in run.turns] == [4]


def test_without_an_id_the_text_alone_makes_the_link_likely() -> None:
    run = build_run(
        [*BEGUN, worker(3, [], "monday is free all day"), boss(4, [*WAITING, user("monday is free all day")], "x")]
    )
    assert ways(run, "closing") == [("closing", 3, 4, "data_flow", "likely")]


def test_a_short_text_of_the_user_is_not_a_subagents_message() -> None:
    run = build_run([*BEGUN, worker(3, [], "done"), boss(4, [*WAITING, user("done")], "what is?")])
    assert [turn.user for turn in run.turns] == ["plan my week, please", "done"]


def test_a_report_and_the_closing_message_may_come_in_one_message() -> None:
    report = assistant(asks("report", '{"output": "monday has two meetings"}', "r1"))
    accepted = [report, result("report accepted", "r1")]
    both = user("child-0001 reported: monday has two meetings\nchild-0001 finished: that was all")
    run = build_run(
        [*BEGUN, worker(3, [], report), worker(4, accepted, "that was all"), boss(5, [*WAITING, both], "x")]
    )
    assert ways(run, "report", "closing") == [("report", 3, 5, "id", "certain"), ("closing", 4, 5, "id", "certain")]


def test_an_answer_is_not_received_before_it_was_sent() -> None:
    """The subagent's answer ends after the parent's request began: the parent heard something else."""
    said = user("child-0001: monday is free")
    late = worker(3, [], "monday is free", at=300, end=900)
    run = build_run([*BEGUN, late, boss(4, [*WAITING, said], "good", at=400, end=450)])
    assert ways(run, "closing") == []


def test_two_messages_queued_at_once_are_two_turns_in_their_order() -> None:
    twice = sends("and tuesday", "and tuesday")
    queued = [result("queued for child-0001", "s0"), result("queued for child-0001", "s1")]
    first = [assistant("monday is free"), user("and tuesday")]
    run = build_run(
        [
            boss(1, [], START),
            boss(2, [START, STARTED], twice),
            worker(3, [], "monday is free"),
            boss(4, [START, STARTED, twice, *queued], "waiting"),
            worker(5, first, "tuesday is free"),
            worker(6, [*first, assistant("tuesday is free"), user("and tuesday")], "still free"),
        ]
    )
    messages = links(run, "message")
    assert [(link.from_call, link.tool_index, link.to_call) for link in messages] == [(2, 0, 5), (2, 1, 6)]
    assert {link.certainty for link in messages} == {"certain"}
    assert [len(turn.steps) for turn in run.turns] == [6]


def test_a_message_in_other_words_is_linked_by_order_alone() -> None:
    send = sends("and tuesday")
    more = [assistant("monday is free"), user("[a message of the coordinator, shortened]")]
    run = build_run(
        [boss(1, [], START), boss(2, [START, STARTED], send), worker(3, [], "monday is free"), worker(4, more, "free")]
    )
    assert ways(run, "message") == [("message", 2, 4, "order", "possible")]


def test_a_message_that_a_tool_refused_is_not_received() -> None:
    send = sends("hello?", to="nobody-77")
    refused = result("error: no subagent nobody-77; the message was not delivered", "s0")
    run = build_run([boss(1, [], send), boss(2, [send, refused], "no such agent")])
    (lost,) = links(run, "message")
    assert (lost.to_call, lost.to_agent) == (None, None)
    assert lost.detail == "not delivered: error: no subagent nobody-77; the message was not delivered"


def test_a_message_whose_turn_is_not_on_the_tape() -> None:
    send = sends("and tuesday")
    history = [START, STARTED, send, result("queued", "s0")]
    run = build_run([boss(1, [], START), boss(2, [START, STARTED], send), worker(3, [], "free"), boss(4, history, "x")])
    (lost,) = links(run, "message")
    assert (lost.to_agent, lost.detail) == (1, "its turn is not on the tape")


def test_a_notification_that_only_names_the_agent() -> None:
    note = user("<task-notification><task-id>child-0001</task-id><status>done</status></task-notification>")
    run = build_run([*BEGUN, worker(3, [], "monday is free"), boss(4, [*WAITING, note], "good")])
    assert ways(run, "closing") == [("closing", 3, 4, "id", "likely")]


def test_a_last_answer_in_the_result_of_a_tool_that_waited_for_it() -> None:
    wait = assistant(asks("wait_agent", "{}", "w1"))
    run = build_run(
        [
            boss(1, [], START),
            boss(2, [START, STARTED], wait),
            worker(3, [], "monday is free all day"),
            boss(4, [START, STARTED, wait, result("monday is free all day", "w1")], "good"),
        ]
    )
    assert [(link.kind, link.tool) for link in links(run, "closing", "result")] == [("closing", "wait_agent")]


def test_a_foreground_subagents_answer_is_its_tools_result() -> None:
    run = build_run(
        [boss(1, [], START), worker(2, [], "monday is free"), boss(3, [START, result("monday is free", "t1")], "good")]
    )
    assert ways(run, "started", "result") == [
        ("started", 1, 2, "data_flow", "likely"),
        ("result", 2, 3, "data_flow", "likely"),
    ]


def test_a_foreground_subagent_that_is_not_quoted_is_linked_by_order() -> None:
    run = build_run([boss(1, [], START), worker(2, [], "monday is free"), boss(3, [START, result("OK", "t1")], "good")])
    assert ways(run, "result") == [("result", 2, 3, "order", "possible")]


def test_a_message_marked_as_another_agents_starts_no_turn() -> None:
    sealed = Message(
        "agent",
        (Text("Message Type: NEW_TASK"), Unknown("encrypted_content", {"encrypted_content": "gAAA"})),
        extra=(("author", "nobody"), ("recipient", "me")),
    )
    run = build_run([boss(1, [], "hello"), boss(2, [assistant("hello"), sealed], "done")])
    assert [len(turn.steps) for turn in run.turns] == [2]
    assert run.steps[1].cause.kind == "continuation"


def test_a_users_text_beside_a_report_starts_a_turn() -> None:
    said = [user("child-0001 says: monday is free"), user("and what about my holidays?")]
    run = build_run([*BEGUN, worker(3, [], "monday is free"), boss(4, [*WAITING, *said], "good")])
    assert [turn.user for turn in run.turns] == ["plan my week, please", "and what about my holidays?"]
    assert run.steps[3].links[0].kind == "closing"


def test_a_subagent_that_is_resumed_before_its_start_is_on_the_tape() -> None:
    send = sends("and tuesday")
    before = [TASK, assistant("monday is free")]
    run = build_run(
        [
            boss(1, [START, STARTED, assistant("waiting"), user("and tuesday?")], send),
            make_call(2, [WORKER, *before, user("and tuesday")], "free", offers=tools("report")),
        ]
    )
    assert [(agent.name, agent.started_tool) for agent in run.agents] == [("root", None), ("subagent", "send_message")]
    assert [(link.kind, link.detail) for link in run.links] == [("message", "its start is not on the tape")]
    assert run.steps[1].cause.detail == "a message from its parent"
