from __future__ import annotations

from tests.support.calls import asks, assistant, make_call, result, user
from tests.support.linting import found

from wiretape.model.call import Control, Message, ToolCall

HI = user("what is new?")


def test_a_tool_call_that_the_next_request_carries_without_its_result_is_an_error() -> None:
    ask = assistant(asks("a", '{"n": 1}', "1"), asks("b", '{"n": 2}', "2"))
    calls = [make_call(1, [HI], ask), make_call(2, [HI, ask, result("x", "1")], "done")]
    [lost] = found("WT001", *calls)
    assert (lost.severity, lost.call, lost.path) == ("error", 1, "answer.tool_calls[1]")
    assert lost.text == "b never got a result: call 2 goes on without it"


def test_an_answer_that_was_left_out_of_the_history_with_its_tool_calls_is_a_warning() -> None:
    calls = [make_call(1, [HI], assistant(asks("a", "{}", "1"))), make_call(2, [HI, assistant("never mind")], "done")]
    [lost] = found("WT001", *calls)
    assert (lost.severity, lost.text) == (
        "warning",
        "a never got a result: call 2 goes on without the answer that asked for it",
    )


def test_a_tool_call_that_ends_a_thread_is_only_information() -> None:
    [lost] = found("WT001", make_call(1, [HI], assistant(asks("final_result", "{}", "1"))))
    assert (lost.severity, lost.text) == ("info", "final_result never got a result: the thread ends there")


def test_tools_of_cut_answers_and_of_the_provider_are_not_waited_for() -> None:
    search = assistant(ToolCall("s", "web_search", "{}", "server"), "so")
    assert found("WT001", make_call(1, [HI], search)) == []
    assert found("WT001", make_call(1, [HI], assistant(asks("look", '{"q": "we')), complete=False)) == []


def test_a_result_whose_call_was_trimmed_away_names_its_id_and_place() -> None:
    history = [user("summary so far"), result("22:34", "call_7", "clock"), user("and now?")]
    [lost] = found("WT002", make_call(1, history, status=400))
    assert (lost.severity, lost.path) == ("error", "messages[1].content")
    assert (
        lost.text == "a result of clock answers a tool call that the history does not hold; the provider answered 400"
    )
    assert lost.values == {"id": "call_7", "result": "22:34"}


def test_a_lost_result_is_told_once_though_every_later_request_carries_it() -> None:
    history = [user("summary so far"), result("22:34", "call_7"), user("and now?")]
    more = [*history, assistant("22:35"), user("thanks")]
    assert len(found("WT002", make_call(1, history, "22:35"), make_call(2, more, "welcome"))) == 1


def test_results_that_only_the_provider_can_place_are_not_judged() -> None:
    lone = [result("22:34", "call_7")]
    assert found("WT002", make_call(1, lone, "ok", previous="resp_1")) == []
    assert found("WT002", make_call(1, lone, "ok", settings={"conversation": "conv_1"})) == []
    reference = Message("user", (Control("item_reference", {"id": "fc_1"}),))
    assert found("WT002", make_call(1, [reference, *lone], "ok")) == []
    search = assistant(ToolCall("tsc_1", "tool_search", "{}", "server"))
    assert found("WT002", make_call(1, [HI, search, result("", "tso_1")], "ok")) == []


def test_an_id_that_only_the_client_made_up_is_no_other_call() -> None:
    asked = assistant(asks("read_file", "{}"))
    assert found("WT002", make_call(1, [HI, asked, result("x", "08a3#0-0", "read_file")], "ok")) == []
    assert len(found("WT002", make_call(1, [HI, asked, result("x", "08a3#0-0", "write_file")], "ok"))) == 1


def test_a_loop_that_is_as_it_should_be_has_no_findings() -> None:
    ask = assistant(asks("a", "{}", "1"), asks("b", "{}", "2"))
    calls = [make_call(1, [HI], ask), make_call(2, [HI, ask, result("x", "2"), result("y", "1")], "done")]
    assert found("WT001", *calls) == found("WT002", *calls) == []
