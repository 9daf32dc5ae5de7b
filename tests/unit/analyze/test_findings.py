from __future__ import annotations

from dataclasses import replace

from tests.support.calls import asks, assistant, make_call, result, system, thinks, tools, user

from wiretape.analyze.findings import findings
from wiretape.loop.run import build_run
from wiretape.model.call import Message, ModelCall, Reasoning, ToolCall

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


def test_the_loop_asks_the_same_again() -> None:
    first, again = assistant(asks("look", '{"a": 1}', "1")), assistant(asks("look", '{ "a":1 }', "2"))
    history = [HI, first, result("none", "1")]
    calls = [make_call(1, [HI], first), make_call(2, history, again)]
    done = make_call(3, [*history, again, result("none", "2")], "nothing")
    assert found(*calls, done) == [
        (
            "repeated_tool_call",
            2,
            "look was asked for 2 times with the same arguments (calls 1, 2); the results are the same",
        )
    ]


def test_the_same_tool_twice_in_one_answer() -> None:
    ask = assistant(asks("draw", "{}", "1"), asks("draw", "{}", "2"))
    [(kind, call, text)] = found(
        make_call(1, [HI], ask), make_call(2, [HI, ask, result("seven", "1"), result("queen", "2")], "two cards")
    )
    assert (kind, call) == ("repeated_tool_call", 1)
    assert text == "draw was asked for 2 times with the same arguments (call 1); the results differ"


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
