from __future__ import annotations

from tests.support.calls import asks, assistant, make_call, result, user

from wiretape.model.call import Message, ModelCall, ToolCall, ToolResult
from wiretape.runs.threads import ThreadBuilder
from wiretape.runs.tools import RequestedTool, pair

HI = user("hi")


def paired(*calls: ModelCall) -> list[RequestedTool]:
    builder = ThreadBuilder(calls)
    return pair(calls, builder.links, builder.drafts)


def results(uses: list[RequestedTool]) -> list[tuple[str | None, int | None]]:
    return [(use.result.text if use.result else None, use.result_call) for use in uses]


def test_results_pair_by_id_in_any_order() -> None:
    ask = assistant(asks("a", "{}", "1"), asks("b", "{}", "2"))
    calls = (make_call(1, [HI], ask), make_call(2, [HI, ask, result("B", "2"), result("A", "1")], "done"))
    assert results(paired(*calls)) == [("A", 2), ("B", 2)]


def test_an_id_that_repeats_pairs_with_the_latest_open_call() -> None:
    ask = assistant(asks("a", "{}", "same"))
    history = [HI, ask, result("first", "same")]
    calls = (
        make_call(1, [HI], ask),
        make_call(2, history, ask),
        make_call(3, [*history, ask, result("second", "same")], "done"),
    )
    assert results(paired(*calls)) == [("first", 2), ("second", 3)]


def test_results_without_ids_pair_by_name_and_order() -> None:
    ask = assistant(asks("look"), asks("find"), asks("look"))
    answers = [result("f", name="find"), result("l1", name="look"), result("l2", name="look")]
    calls = (make_call(1, [HI], ask), make_call(2, [HI, ask, *answers], "done"))
    assert results(paired(*calls)) == [("l1", 2), ("f", 2), ("l2", 2)]


def test_results_with_neither_pair_by_position() -> None:
    ask = assistant(asks("look"), asks("find"))
    calls = (make_call(1, [HI], ask), make_call(2, [HI, ask, result("x"), result("y")], "done"))
    assert results(paired(*calls)) == [("x", 2), ("y", 2)]


def test_ids_that_the_client_made_anew_keep_their_order() -> None:
    ask = assistant(asks("a", "{}", "1"), asks("b", "{}", "2"), asks("c", "{}", "3"))
    resent = assistant(asks("a", "{}", "x"), asks("b", "{}", "2"), asks("c", "{}", "z"))
    answers = [result("A", "x"), result("B", "2"), result("C", "z")]
    calls = (make_call(1, [HI], ask), make_call(2, [HI, resent, *answers], "done"))
    assert results(paired(*calls)) == [("A", 2), ("B", 2), ("C", 2)]


def test_plain_text_answers_all_open_tools() -> None:
    ask = assistant(asks("look", "{}", "1"), asks("find", "{}", "2"))
    words = [assistant("Calling tools: look, find"), user("Observation:\nx\ny")]
    uses = paired(make_call(1, [HI], ask), make_call(2, [HI, *words], "done"))
    assert results(uses) == [("Observation:\nx\ny", 2)] * 2


def test_several_results_in_one_message() -> None:
    ask = assistant(asks("a", "{}", "1"), asks("b", "{}", "2"))
    both = Message("user", (ToolResult("1", None, "A"), ToolResult("2", None, "B", is_error=True)))
    assert results(paired(make_call(1, [HI], ask), make_call(2, [HI, ask, both], "done"))) == [("A", 2), ("B", 2)]


def test_a_result_that_names_another_tool_is_not_taken() -> None:
    ask = assistant(asks("look"))
    calls = (make_call(1, [HI], ask), make_call(2, [HI, ask, result("x", name="other")], "done"))
    assert results(paired(*calls)) == [(None, None)]


def test_history_from_before_the_tape_asks_for_nothing() -> None:
    ask = assistant(asks("a", "{}", "1"))
    assert paired(make_call(1, [HI, ask, result("x", "1")], "done")) == []


def test_a_tool_that_the_provider_runs_is_answered_in_place() -> None:
    search = assistant(ToolCall("s", "web_search", "{}", "server"), ToolResult("s", None, "found", kind="server"), "so")
    assert results(paired(make_call(1, [HI], search))) == [("found", 1)]


def test_a_retry_does_not_take_a_result_twice() -> None:
    ask = assistant(asks("a", "{}", "1"))
    history = [HI, ask, result("x", "1")]
    calls = (make_call(1, [HI], ask), make_call(2, history, status=529), make_call(3, history, "done"))
    assert results(paired(*calls)) == [("x", 2)]


def test_both_ways_of_a_fork_may_answer_the_same_tool_call() -> None:
    ask = assistant(asks("a", "{}", "1"))
    calls = (
        make_call(1, [HI], ask),
        make_call(2, [HI, ask, result("x", "1")], "left"),
        make_call(3, [HI, ask, result("y", "1")], "right"),
    )
    assert results(paired(*calls)) == [("x", 2)]  # the first is what the tool call got
