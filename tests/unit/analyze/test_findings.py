from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support.calls import asks, assistant, make_call, result, system, thinks, tools, user

from wiretape.analyze.findings import findings
from wiretape.analyze.lint.base import Subject
from wiretape.analyze.lint.rules import lint
from wiretape.model.call import Message, ModelCall, Reasoning, ToolCall
from wiretape.runs.run import build_run

HI = user("what time is it in Beijing?")
CLOCK = asks("getCurrentTime", '{"timezone": "Asia/Shanghai"}', "call_00")
THOUGHT = assistant(thinks("I should ask the clock."), CLOCK)


def found(*calls: ModelCall) -> list[tuple[str, int | None, str]]:
    return [(finding.kind, finding.call, finding.text) for finding in findings(build_run(calls))]


def deepseek(number: int, messages: list[Message], answer: Message | str) -> ModelCall:
    return replace(make_call(number, messages, answer, model="deepseek-v4-pro"), dialect="deepseek")


def test_reasoning_that_a_thinking_mode_history_must_carry_was_dropped() -> None:
    history = [HI, assistant(CLOCK), result("22:34", "call_00")]
    assert found(deepseek(1, [HI], THOUGHT), deepseek(2, history, "It is 22:34.")) == [
        (
            "dropped_reasoning",
            2,
            (
                "reasoning_content was dropped from messages[1]: the answer of call 1 had it, "
                "and a thinking-mode history with tool calls must carry it"
            ),
        )
    ]


def test_reasoning_that_was_sent_back_is_fine_even_if_it_is_empty() -> None:
    for block in (thinks("I should ask the clock."), Reasoning("")):
        history = [HI, assistant(block, CLOCK), result("22:34", "call_00")]
        assert found(deepseek(1, [HI], THOUGHT), deepseek(2, history, "It is 22:34.")) == []


def test_other_providers_and_answers_without_tools_need_no_reasoning() -> None:
    history = [HI, assistant(CLOCK), result("22:34", "call_00")]
    assert found(make_call(1, [HI], THOUGHT), make_call(2, history, "22:34")) == []
    said = assistant(thinks("easy"), "hello")
    assert found(deepseek(1, [HI], said), deepseek(2, [HI, assistant("hello"), user("more")], "x")) == []


def test_a_tool_call_that_never_got_its_result() -> None:
    ask = assistant(asks("a", "{}", "1"), asks("b", "{}", "2"))
    assert found(make_call(1, [HI], ask), make_call(2, [HI, ask, result("x", "1")], "done")) == [
        ("unanswered_tool_call", 1, "b from call 1 never got a result: call 2 goes on without it")
    ]


def test_one_finding_for_all_tools_of_a_call() -> None:
    ask = assistant(asks("a", "{}", "1"), asks("a", '{"n": 2}', "2"), asks("b", "{}", "3"))
    [(_, _, text)] = found(make_call(1, [HI], ask))
    assert text.startswith("a ×2 and b from call 1 never got a result: the thread ends there")


def test_a_tool_call_at_the_end_may_be_meant() -> None:
    [finding] = findings(build_run([make_call(1, [HI], assistant(asks("final_result")))]))
    assert (finding.kind, finding.estimate) == ("unanswered_tool_call", True)


def test_tools_of_failed_calls_and_of_the_provider_are_not_waited_for() -> None:
    search = assistant(ToolCall("s", "web_search", "{}", "server"), "so")
    cut = assistant(asks("look", '{"q": "we'))
    assert found(make_call(1, [HI], search)) == []
    assert found(make_call(1, [HI], cut, complete=False)) == []


SAYS = "a result that says something"


def again(*results: str) -> list[ModelCall]:
    """A loop that asks the same of one tool in each call, and gets these results."""
    history, calls = [HI], []
    for number, said in enumerate(results, 1):
        ask = assistant(asks("look", '{"a": 1}', f"c{number}"))
        calls.append(make_call(number, list(history), ask))
        history += [ask, result(said, f"c{number}")]
    return [*calls, make_call(len(results) + 1, history, "done")]


def test_the_loop_asks_the_same_again() -> None:
    said = "look was asked for 2 times with the same arguments and said the same (calls 1, 2)"
    assert found(*again(SAYS, SAYS)) == [("repeated_tool_call", 2, said)]


def test_a_loop_that_goes_round_is_told_as_such_and_once() -> None:
    said = "the same call 3 times in a row (calls 1 to 3): look"
    assert found(*again(SAYS, SAYS, SAYS)) == [("runaway_loop", 3, said)]


def test_the_same_again_with_another_result_is_no_finding() -> None:
    assert found(*again("it is 22:34 in Beijing", "it is 22:35 in Beijing")) == []


@pytest.mark.parametrize(
    "results", [(SAYS, SAYS), (SAYS,) * 4, ("it is 22:34 by now", "it is 22:35 by now"), ("ok", "ok")]
)
def test_lint_says_of_repeats_what_stats_say(results: tuple[str, ...]) -> None:
    run = build_run(again(*results))
    linted = [finding for finding in lint(Subject(run)) if finding.rule in ("WT007", "WT008")]
    stats = [finding for finding in findings(run) if finding.kind in ("repeated_tool_call", "runaway_loop")]
    assert [(finding.call, finding.text) for finding in stats] == [(one.call, one.text) for one in linted]


def test_the_same_tool_in_two_threads_is_no_repetition() -> None:
    one, other = system("one agent of ours"), system("quite another speaker here")
    ask = assistant(asks("look", '{"a": 1}', "1"))
    calls = [make_call(1, [one, HI], ask, offers=tools("a")), make_call(2, [other, HI], ask, offers=tools("b"))]
    assert {kind for kind, _, _ in found(*calls)} == {"unanswered_tool_call"}


def test_a_model_that_changes_in_a_thread() -> None:
    calls = (make_call(1, [HI], "a", model="big"), make_call(2, [HI, assistant("a"), user("b")], "c", model="small"))
    assert found(*calls) == [("model_changed", 2, "the model asked for changed from big (call 1) to small")]


def test_findings_come_in_the_order_of_calls() -> None:
    clock = "It is {} now, and you are an agent."
    ask = assistant(asks("a", "{}", "1"))
    calls = (
        make_call(1, [system(clock.format("10:00")), HI], ask),
        make_call(2, [system(clock.format("10:01")), HI, ask, user("never mind")], "fine"),
    )
    assert [(kind, call) for kind, call, _ in found(*calls)] == [("unanswered_tool_call", 1), ("prefix_break", 2)]
