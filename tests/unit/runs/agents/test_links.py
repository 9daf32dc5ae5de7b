"""Starts, handoffs, lists and interruptions as links."""

from __future__ import annotations

from dataclasses import replace

from tests.support.calls import asks, assistant, make_call, result, system, tools, user

from wiretape.model.call import Message, ModelCall
from wiretape.model.http import Ended
from wiretape.model.run import Run
from wiretape.runs.run import build_run

BOSS, WORKER = system("You lead the work and hand it out."), system("Worker: do as told, one sentence.")
OFFERS = tools("subagent", "list_agents", "interrupt_agent")
GO = user("plan my week, please")
START = assistant(asks("subagent", '{"prompt": "look at monday, and tell me"}', "t1"))
BEGUN = [BOSS, GO, START, result("started subagent child-0001", "t1")]
LIST, STOP = (
    assistant(asks("list_agents", "{}", "l1")),
    assistant(asks("interrupt_agent", '{"id": "child-0001"}', "i1")),
)
CHILD = [WORKER, user("look at monday, and tell me")]


def details(run: Run, kind: str) -> list[tuple[int | None, str | None]]:
    return [(link.to_agent, link.detail) for link in run.links if link.kind == kind]


def listing(answer: str) -> Run:
    return build_run(
        [
            make_call(1, [BOSS, GO], START, offers=OFFERS),
            make_call(2, CHILD, assistant(asks("look", "{}", "x")), offers=tools("look"), ended_at=900),
            make_call(3, BEGUN, LIST, offers=OFFERS),
            make_call(4, [*BEGUN, LIST, result(answer, "l1")], "good", offers=OFFERS),
        ]
    )


def test_a_list_is_compared_with_the_calls_that_the_tape_has() -> None:
    run = listing("child-0001 [running] — monday\n9999-gone [diagnostic: unavailable]")
    assert details(run, "listed") == [
        (1, "running; 1 of its calls had begun, 0 came later, call 2 was under way"),
        (None, "9999-gone diagnostic: unavailable; no call of it is on the tape"),
    ]


def test_a_subagent_that_the_list_omits_is_reported() -> None:
    assert details(listing("(no subagents)"), "listed") == [
        (1, "not in the list; 1 of its calls had begun, 0 came later, call 2 was under way")
    ]


def test_an_agent_for_one_task_is_left_out_of_lists_by_design() -> None:
    done = [BOSS, GO, START, result("monday is free", "t1")]
    run = build_run(
        [
            make_call(1, [BOSS, GO], START, offers=OFFERS),
            make_call(2, CHILD, "monday is free", offers=tools("look")),
            make_call(3, done, LIST, offers=OFFERS),
            make_call(4, [*done, LIST, result("(no subagents)", "l1")], "good", offers=OFFERS),
        ]
    )
    assert details(run, "listed") == []


def interrupted(child: ModelCall) -> Run:
    return build_run(
        [
            make_call(1, [BOSS, GO], START, offers=OFFERS),
            child,
            make_call(3, BEGUN, STOP, offers=OFFERS),
            make_call(4, [*BEGUN, STOP, result("interrupted", "i1")], "good", offers=OFFERS),
        ]
    )


def test_an_interruption_names_the_call_that_it_cut() -> None:
    cut = make_call(2, CHILD, "hal", offers=tools("look"), complete=False, ended_at=380)
    run = interrupted(replace(cut, ended=Ended.CLIENT_CLOSED))
    assert [(x.from_call, x.to_call, x.to_agent) for x in run.links if x.kind == "interrupted"] == [(3, 2, 1)]


def test_an_interruption_without_a_cut_call_is_marked() -> None:
    run = interrupted(make_call(2, CHILD, "monday is free", offers=tools("look")))
    assert details(run, "interrupted") == [(1, "no call was cut")]


# -- handoffs ----------------------------------------------------------------------------------------------------

TRIAGE, BILLING = system("Triage: send people on."), system("Billing: you know all about invoices.")
HAND = assistant(asks("transfer_to_billing", "{}", "h1"))
BACK = assistant(asks("transfer_back_to_triage", "{}", "h2"))


def handed(*more: ModelCall) -> Run:
    given: list[Message] = [GO, HAND, result('{"assistant": "billing"}', "h1")]
    return build_run(
        [
            make_call(1, [TRIAGE, GO], HAND, offers=tools("transfer_to_billing")),
            make_call(2, [BILLING, *given], "your invoice is paid", offers=tools("look_up")),
            *more,
        ]
    )


GIVEN = [GO, HAND, result('{"assistant": "billing"}', "h1"), assistant("your invoice is paid")]


def test_a_handoff_is_another_agent_with_a_thread_of_its_own() -> None:
    run = handed()
    assert [(agent.name, agent.parent, agent.origin) for agent in run.agents] == [
        ("root", None, "root"),
        ("billing", 0, "handoff"),
    ]
    assert [(thread.calls, thread.from_call) for thread in run.threads] == [((1,), None), ((2,), 1)]
    assert [(x.kind, x.from_call, x.to_call, x.tool) for x in run.links] == [("handoff", 1, 2, "transfer_to_billing")]
    assert run.steps[1].cause.kind == "handoff"
    assert (len(run.turns), run.turns[0].answer) == (1, "your invoice is paid")


def test_an_agent_that_took_a_conversation_over_gets_the_users_messages() -> None:
    run = handed(make_call(3, [BILLING, *GIVEN, user("and the one before?")], "paid, too", offers=tools("look_up")))
    assert [turn.user for turn in run.turns] == ["plan my week, please", "and the one before?"]
    assert [step.agent for step in run.steps] == [0, 1, 1]


def test_a_conversation_may_be_handed_back() -> None:
    requested = [*GIVEN, user("something else, please")]
    run = handed(
        make_call(3, [BILLING, *requested], BACK, offers=tools("look_up")),
        make_call(4, [TRIAGE, *requested, BACK, result("ok", "h2")], "gladly", offers=tools("transfer_to_billing")),
    )
    assert [step.agent for step in run.steps] == [0, 1, 1, 0]
    assert [agent.name for agent in run.agents] == ["root", "billing"]


def test_a_session_that_continues_with_another_prompt_is_not_a_handoff() -> None:
    same = {"x-session-id": "s-0001"}
    run = build_run(
        [
            make_call(1, [TRIAGE, GO], HAND, offers=tools("transfer_to_billing"), headers=same),
            make_call(2, [BILLING, *GIVEN[:3]], "paid", offers=tools("look_up"), headers=same),
        ]
    )
    assert len(run.agents) == 1


# -- several agents, one question --------------------------------------------------------------------------------


def test_answers_that_one_agent_combines_are_one_turn() -> None:
    red, blue, both = system("Red: argue for it."), system("Blue: argue against it."), system("Judge.")
    said = [assistant("yes, by all means"), assistant("no, by no means")]
    run = build_run(
        [
            make_call(1, [red, GO], "yes, by all means", offers=tools("look")),
            make_call(2, [blue, GO], "no, by no means", offers=tools("find"), at=120),
            make_call(3, [both, GO, *said], "perhaps"),
        ]
    )
    assert [len(turn.steps) for turn in run.turns] == [3]
    assert [(x.kind, x.from_call, x.to_call) for x in run.links] == [("result", 1, 3), ("result", 2, 3)]


def test_the_order_of_the_agents_answers_does_not_count() -> None:
    red, blue = system("Red: argue for it."), system("Blue: argue against it.")
    for ended in (110, 150, 400):  # before the other one starts, while it works, after it
        one = make_call(1, [red, GO], "yes, by all means", offers=tools("look"), at=100, ended_at=ended)
        other = make_call(2, [blue, GO], "no, by no means", offers=tools("find"), at=120, ended_at=180)
        assert [len(turn.steps) for turn in build_run([one, other]).turns] == [2]


def test_the_same_question_later_is_another_turn() -> None:
    red, blue = system("Red: argue for it."), system("Blue: argue against it.")
    run = build_run(
        [
            make_call(1, [red, GO], "yes, by all means", offers=tools("look")),
            make_call(2, [blue, GO], "no, by no means", offers=tools("find"), at=9000),
        ]
    )
    assert [len(turn.steps) for turn in run.turns] == [1, 1]


# -- histories that a provider summed up ------------------------------------------------------------------------


def test_a_fork_of_the_same_agent_is_a_link() -> None:
    first = [GO, assistant("what about it?")]
    run = build_run(
        [
            make_call(1, [BOSS, GO], "what about it?", offers=OFFERS),
            make_call(2, [BOSS, *first, user("one")], "1", offers=OFFERS),
            make_call(3, [BOSS, *first, user("two")], "2", offers=OFFERS),
        ]
    )
    assert [(x.kind, x.from_call, x.to_call, x.to_agent) for x in run.links] == [("fork", 1, 3, 0)]
