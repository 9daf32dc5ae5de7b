from __future__ import annotations

from dataclasses import replace

from tests.support.calls import asks, assistant, make_call, result, system, tools, user

from wiretape.analyze.stats import call_usage, first_token_ms, hit_rate, stats, usage_sum, wall_ms
from wiretape.model.call import ModelCall, Usage
from wiretape.runs.run import build_run

HI = user("hi")


def using(number: int, usage: Usage | None, **more: object) -> ModelCall:
    return make_call(number, [HI], f"answer {number}", usage=usage, **more)  # type: ignore[arg-type]


def test_unknown_is_never_nought() -> None:
    total = usage_sum([using(1, Usage(347, None, None, 75, 18)), using(2, None), using(3, Usage(462, 256, None, 31))])
    assert (total.input, total.cached, total.cache_write, total.output, total.reasoning) == (809, 256, None, 106, 18)
    assert total.unknown_calls == 1
    assert total.unknown == {"input": 1, "cached": 2, "cache_write": 3, "output": 1, "reasoning": 2}


def test_a_nought_that_the_wire_gives_is_known() -> None:
    total = usage_sum([using(1, Usage(10, 0, 0, 5, 0))])
    assert (total.cached, total.reasoning, total.unknown) == (0, 0, {})


def test_a_call_without_usage_has_none() -> None:
    assert call_usage(using(1, None)) is None
    assert call_usage(using(1, Usage())) is None
    assert usage_sum([]).input is None


def test_a_token_count_owes_no_usage() -> None:
    assert usage_sum([using(1, None, kind="token_count")]).unknown_calls == 0


def test_the_hit_rate_is_over_calls_that_give_both() -> None:
    calls = [using(1, Usage(100, 50)), using(2, Usage(900)), using(3, None), using(4, Usage(100, 0))]
    assert hit_rate(calls) == 0.25
    assert hit_rate(calls[1:3]) is None
    assert hit_rate([using(1, Usage(0, 0))]) is None


def test_times() -> None:
    call = make_call(1, [HI], "a", at=1000, ended_at=1900)
    assert call.response is not None
    streamed = replace(call, response=replace(call.response, first_token_at=1250))
    assert (first_token_ms(streamed), first_token_ms(call)) == (250, None)
    assert wall_ms([call, make_call(2, [HI], "b", at=1500, ended_at=2500)]) == 1500
    assert wall_ms([replace(call, ended_at=None)]) is None
    assert wall_ms([]) is None


def test_tallies_per_turn_agent_and_model() -> None:
    ask = assistant(asks("delegate", '{"task": "look at monday"}', "x"))
    run = build_run(
        [
            make_call(1, [system("lead"), HI], ask, offers=tools("delegate"), usage=Usage(10, 0, None, 1), model="big"),
            make_call(2, [system("do"), user("look at monday")], "free", usage=Usage(5, None, None, 2), model="small"),
            make_call(3, [system("lead"), HI, ask, result("free", "x")], "ok", offers=tools("delegate"), model="big"),
        ],
        other_exchanges=(4, 5),
    )
    report = stats(run, ["the tape was cut"])
    assert (report.calls, report.tool_calls, report.agents, report.other_exchanges) == (3, 1, 2, 2)
    assert report.warnings == ["the tape was cut"]
    assert report.wall_ms == 250
    [turn] = report.turns
    assert (turn.turn, turn.user, turn.answer, turn.calls, turn.tool_calls, turn.agents) == (1, "hi", "ok", 3, 1, 2)
    assert (turn.usage.input, turn.usage.unknown_calls) == (15, 1)
    assert [(step.call, step.agent, step.tool_calls) for step in turn.steps] == [
        (1, "root", ["delegate"]),
        (2, "delegate", []),
        (3, "root", []),
    ]
    assert turn.steps[2].usage is None
    assert [(agent.name, agent.calls, agent.parent, agent.started_by, agent.basis) for agent in report.by_agent] == [
        ("root", 2, None, None, None),
        ("delegate", 1, "root", 1, "data_flow"),
    ]
    assert [(model.name, model.calls, model.usage.input) for model in report.by_model] == [
        ("big", 2, 10),
        ("small", 1, 5),
    ]


def test_the_models_are_the_answers_and_the_requests() -> None:
    call = make_call(1, [HI], "a")
    assert call.response is not None
    run = build_run([replace(call, response=replace(call.response, model="answered"))])
    step = stats(run).turns[0].steps[0]
    assert (step.model, step.requested_model) == ("answered", "m")


def test_side_calls_are_counted_in_the_total_and_listed_apart() -> None:
    report = stats(build_run([make_call(1, [HI], "a"), make_call(2, [HI], kind="token_count")]))
    assert (report.calls, [turn.calls for turn in report.turns]) == (2, [1])
    assert [step.why for step in report.side_calls] == ["side call, beside call 1 (token count)"]


def test_an_empty_run() -> None:
    report = stats(build_run([]))
    assert (report.calls, report.agents, report.turns, report.wall_ms, report.hit_rate) == (0, 0, [], None, None)


def test_a_failed_call_is_reported_with_its_status() -> None:
    step = stats(build_run([make_call(1, [HI], status=429)])).turns[0].steps[0]
    assert (step.status, step.finish, step.usage) == (429, "error", None)
