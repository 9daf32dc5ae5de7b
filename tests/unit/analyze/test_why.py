from __future__ import annotations

from tests.support.calls import asks, assistant, make_call, result, system, tools, user

from wiretape.analyze.why import why
from wiretape.model.call import ModelCall
from wiretape.runs.run import build_run

BOSS, WORKER = system("你是个人助理主管。遇到日程类请求时交给日历助手。"), system("Calendar: creates what it is told.")
ASKED, TASK = user("book a review tomorrow at 3"), "a review with 张三, tomorrow at 15:00, one hour"
DELEGATE = assistant(asks("schedule_event", f'{{"request": "{TASK}"}}', "c1"))
CREATE = assistant(asks("create_calendar_event", '{"title": "review"}', "c2"))


def reasons(*calls: ModelCall) -> list[str]:
    run = build_run(calls)
    return [why(step, run) for step in run.steps]


def test_why_one_request_took_four_calls() -> None:
    work = [WORKER, user(TASK)]
    assert reasons(
        make_call(1, [BOSS, ASKED], DELEGATE, offers=tools("schedule_event")),
        make_call(2, work, CREATE, offers=tools("create_calendar_event")),
        make_call(3, [*work, CREATE, result("OK", "c2")], "It is booked.", offers=tools("create_calendar_event")),
        make_call(4, [BOSS, ASKED, DELEGATE, result("It is booked.", "c1")], "Done!", offers=tools("schedule_event")),
    ) == [
        "first call of the turn: the user's message",
        "first call of subagent schedule_event, started by call 1 (inferred from what flowed between them)",
        "answers create_calendar_event from call 2",
        "answers schedule_event from call 1",
    ]


def test_a_child_that_headers_prove_is_not_called_inferred() -> None:
    root = {"x-session-id": "p"}
    child = {"x-session-id": "c", "x-parent-session-id": "p"}
    assert (
        reasons(
            make_call(1, [BOSS, ASKED], DELEGATE, headers=root),
            make_call(2, [WORKER, user("go")], "ok", headers=child),
        )[1]
        == "first call of subagent schedule_event, started by call 1"
    )


def test_what_agents_tell_one_another() -> None:
    root, kid = {"x-deepseek-harness-session-id": "root-id"}, {"x-deepseek-harness-session-id": "child-id"}
    spawn = assistant(asks("subagent", '{"prompt": "read the plan and report"}', "t1"))
    begun = [BOSS, ASKED, spawn, result("started subagent child-id", "t1")]
    send = assistant(asks("send_message", '{"subagent_id": "child-id", "message": "now the budget too"}', "t2"))
    report = [*begun, assistant("waiting"), user("Report of child-id: the plan has three parts")]
    work = [WORKER, user("read the plan and report")]
    more = [*work, assistant("the plan has three parts"), user("now the budget too")]
    assert reasons(
        make_call(1, [BOSS, ASKED], spawn, headers=root),
        make_call(2, begun, "waiting", headers=root),
        make_call(3, work, "the plan has three parts", headers=kid),
        make_call(4, report, send, headers=root),
        make_call(5, more, "the budget is short", headers=kid),
    )[2:] == [
        "first call of subagent, started by call 1",
        "hears the closing message of subagent (call 3)",
        "next message to subagent, sent by call 4 with send_message",
    ]


def test_several_tools_are_named_once_each() -> None:
    ask = assistant(asks("look", "{}", "1"), asks("find", "{}", "2"), asks("look", '{"n": 2}', "3"))
    answers = [result(name, name) for name in ("1", "2", "3")]
    assert reasons(make_call(1, [ASKED], ask), make_call(2, [ASKED, ask, *answers], "done"))[1] == (
        "answers look ×2 and find from call 1"
    )


def test_retries_say_what_went_wrong() -> None:
    assert reasons(
        make_call(1, [ASKED], status=429),
        make_call(2, [ASKED], "hal", complete=False),
        make_call(3, [ASKED], "hello"),
    ) == [
        "first call of the turn: the user's message",
        "retry of call 1 after 429",
        "retry of call 2 after the upstream broke off",
    ]


def test_forks_continuations_side_calls_and_twins() -> None:
    history = [BOSS, ASKED, assistant("a")]
    assert reasons(
        make_call(1, [BOSS, ASKED], "a", offers=tools("t")),
        make_call(2, [*history, user("left")], "b", offers=tools("t")),
        make_call(3, [*history, user("right")], "c", offers=tools("t")),
        make_call(4, [*history, user("right"), assistant("c")], "d", offers=tools("t")),
        make_call(5, [BOSS, ASKED], kind="token_count"),
        make_call(6, [BOSS, ASKED], "a", offers=tools("t")),
    ) == [
        "first call of the turn: the user's message",
        "first call of the turn: the user's message",
        "first call of the turn: the user's message, going another way from call 1",
        "continues after call 3",
        "side call, beside call 4 (token count)",
        "first call of the turn: the user's message (the same request as call 1)",
    ]


def test_a_tape_that_starts_late() -> None:
    late = make_call(1, [BOSS, ASKED, DELEGATE, result("ok", "c1")], "done")
    assert reasons(late) == ["first call of the turn: the user's message (the tape begins in the middle of the turn)"]
