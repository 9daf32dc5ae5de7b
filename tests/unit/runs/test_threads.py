from __future__ import annotations

from dataclasses import replace

from tests.support.calls import asks, assistant, make_call, result, system, thinks, tools, user

from wiretape.model.call import Control, Message, ModelCall, Text, ToolCall, ToolResult
from wiretape.runs.threads import ThreadBuilder, ThreadPlace

S, HI = system("You are a helpful agent of the house."), user("hi")
ASK = assistant(thinks("hmm"), asks("look", '{"a": 1, "b": 2}', "c1"))


def weave(*calls: ModelCall) -> list[ThreadPlace]:
    return list(ThreadBuilder(calls).links.values())


def threads(*calls: ModelCall) -> list[list[int]]:
    return [draft.calls for draft in ThreadBuilder(calls).drafts]


def test_a_call_that_resends_history_and_answer_continues() -> None:
    links = weave(make_call(1, [S, HI], "hello"), make_call(2, [S, HI, assistant("hello"), user("more")], "yes"))
    assert (links[1].relation, links[1].parent, links[1].new_from) == ("continues", 1, 3)


def test_small_changes_in_a_resent_history_do_not_break_a_thread() -> None:
    resent = assistant(asks("look", '{"b":2,"a":1}', "other-id"))  # no reasoning, keys moved, another id
    calls = (make_call(1, [S, HI], ASK), make_call(2, [S, HI, resent, result("x", "other-id")], "done"))
    assert threads(*calls) == [[1, 2]]


def test_a_string_and_its_one_part_are_the_same() -> None:
    parts = Message("user", (Text("hi"), Text("there")))
    calls = (make_call(1, [S, user("hi\nthere")], "a"), make_call(2, [S, parts, assistant("a"), user("b")], "c"))
    assert threads(*calls) == [[1, 2]]


def test_a_clock_in_the_system_prompt_does_not_break_a_thread() -> None:
    clock = "今天是 2026年02月28日 {} 星期六 。# 角色\n你是一名强子开发的智能客服。"
    first, second = system(clock.format("15时05分30秒")), system(clock.format("15时23分47秒"))
    calls = (make_call(1, [first, HI], "a"), make_call(2, [second, HI, assistant("a"), user("b")], "c"))
    assert threads(*calls) == [[1, 2]]


def test_equal_histories_are_told_apart_by_their_prompts() -> None:
    other = system("A reviewer: says what is wrong with a text, and nothing else.")
    calls = (
        make_call(1, [S, HI], "OK", offers=tools("a")),
        make_call(2, [other, HI], "OK", offers=tools("b")),
        make_call(3, [other, HI, assistant("OK"), user("go on")], "x", offers=tools("b")),
        make_call(4, [S, HI, assistant("OK"), user("go on")], "y", offers=tools("a")),
    )
    assert threads(*calls) == [[1, 4], [2, 3]]


def test_the_same_request_after_a_failure_is_a_retry() -> None:
    links = weave(make_call(1, [S, HI], status=429), make_call(2, [S, HI], status=429), make_call(3, [S, HI], "a"))
    assert [(link.relation, link.parent) for link in links] == [("first", None), ("retry", 1), ("retry", 2)]


def test_a_stream_that_was_cut_can_be_retried_and_the_retry_continued() -> None:
    calls = (
        make_call(1, [S, HI], "hel", complete=False),
        make_call(2, [S, HI], "hello"),
        make_call(3, [S, HI, assistant("hello"), user("more")], "a"),
    )
    assert threads(*calls) == [[1, 2, 3]]


def test_a_sibling_that_started_before_the_failure_is_no_retry() -> None:
    calls = (make_call(1, [S, HI], status=500, at=0, ended_at=900), make_call(2, [S, HI], "a", at=100, ended_at=200))
    assert threads(*calls) == [[1], [2]]


def test_a_retry_that_the_sdk_announces_counts_even_if_the_first_answer_looks_whole() -> None:
    again = make_call(2, [S, HI], "b", headers={"x-stainless-retry-count": "1"})
    assert weave(make_call(1, [S, HI], "a"), again)[1].relation == "retry"


def test_two_equal_requests_that_were_both_answered_are_two_threads() -> None:
    calls = (make_call(1, [S, HI], "a"), make_call(2, [S, HI], "b"))
    assert threads(*calls) == [[1], [2]]
    assert weave(*calls)[1].twin == 1


def test_the_same_question_under_another_prompt_is_another_request() -> None:
    other = system("You are a helpful agent of the garden.")
    assert weave(make_call(1, [S, HI], "a"), make_call(2, [other, HI], "b"))[1].twin is None


def test_what_is_said_after_a_failed_call_continues_it() -> None:
    calls = (make_call(1, [S, HI], status=500), make_call(2, [S, HI, user("still there?")], "yes"))
    assert threads(*calls) == [[1, 2]]


def test_a_second_continuation_of_an_earlier_call_is_a_fork() -> None:
    history = [S, HI, assistant("a")]
    builder = ThreadBuilder(
        (
            make_call(1, [S, HI], "a"),
            make_call(2, [*history, user("left")], "b"),
            make_call(3, [*history, user("right")], "c"),
            make_call(4, [*history, user("right"), assistant("c"), user("on")], "d"),
        )
    )
    assert [(draft.calls, draft.from_call) for draft in builder.drafts] == [([1, 2], None), ([3, 4], 1)]


def test_an_answer_that_was_edited_in_the_history_stays_in_the_thread() -> None:
    edited = [S, HI, assistant("Calling tools: look"), user("Observation: fine")]
    links = weave(make_call(1, [S, HI], assistant(asks("look"))), make_call(2, edited, "done"))
    assert (links[1].relation, links[1].parent, links[1].detail) == ("continues", 1, "its answer was changed")


def test_rewritten_history_is_followed_by_the_ids_of_tool_results() -> None:
    cleared = [S, user("(history was summed up)"), ASK, result("x", "c1")]
    links = weave(make_call(1, [S, HI], ASK), make_call(2, cleared, "done"))
    assert (links[1].relation, links[1].parent, links[1].by_id) == ("continues", 1, True)
    assert links[1].detail == "its history was rewritten"


def test_an_answer_that_was_changed_is_followed_by_the_ids_of_its_tools() -> None:
    typographic = assistant("I’ll look.", asks("look", "{}", "c1"))
    resent = assistant("I'll look.", asks("look", "{}", "c1"))
    links = weave(make_call(1, [S, HI], typographic), make_call(2, [S, HI, resent, result("x", "c1")], "done"))
    assert (links[1].parent, links[1].detail) == (1, "its answer was changed")


def test_trimmed_history_is_followed_by_its_last_answer() -> None:
    calls = (make_call(1, [S, HI], "what a long answer"), make_call(2, [S, assistant("what a long answer"), HI], "x"))
    assert threads(*calls) == [[1, 2]]
    assert weave(*calls)[1].detail == "the beginning of its history was left out"


def test_messages_left_out_of_the_middle_of_a_history_are_seen_as_such() -> None:
    full = [S, HI, assistant("one"), user("more"), ASK, result("a long text", "c1"), assistant("two")]
    less = [S, HI, assistant("one"), user("more"), assistant("two"), user("go on")]
    calls = (make_call(1, full[:-1], "two", offers=tools("a")), make_call(2, less, "x", offers=tools("a")))
    assert threads(*calls) == [[1, 2]]
    assert weave(*calls)[1].detail == "messages were left out of its history"


def test_a_history_that_its_provider_compacted_continues_from_the_opaque_item() -> None:
    summary = Message("assistant", (Control("compaction", {"encrypted_content": "gAAAAABsealed"}),))
    calls = (
        make_call(1, [S, HI], "hello"),
        make_call(2, [S, HI, assistant("hello"), user("more")], [summary]),
        make_call(3, [S, summary, user("and now?")], "so it is"),
    )
    assert threads(*calls) == [[1, 2], [3]]
    assert (weave(*calls)[2].relation, weave(*calls)[2].parent, weave(*calls)[2].by_id) == ("compaction", 2, True)


def test_another_prompt_and_other_tools_after_a_tool_that_hands_nothing_over_stay_in_the_thread() -> None:
    specialist = system("A specialist for cats, and for nothing else in the world.")
    handed = [specialist, HI, ASK, result("over to you", "c1")]
    calls = (make_call(1, [S, HI], ASK, offers=tools("a")), make_call(2, handed, "miaow", offers=tools("b")))
    assert threads(*calls) == [[1, 2]]
    assert weave(*calls)[1].detail == "with another system prompt and other tools"


def test_a_handoff_to_another_agent_opens_a_thread_of_its_own() -> None:
    specialist = system("A specialist for cats, and for nothing else in the world.")
    hand = assistant(asks("transfer_to_specialist", "{}", "c1"))
    handed = [specialist, HI, hand, result("over to you", "c1")]
    calls = (make_call(1, [S, HI], hand, offers=tools("a")), make_call(2, handed, "miaow", offers=tools("b")))
    assert threads(*calls) == [[1], [2]]
    assert (weave(*calls)[1].relation, weave(*calls)[1].parent) == ("handoff", 1)


def test_previous_response_id_leads_to_the_call_it_names() -> None:
    calls = (
        make_call(1, [HI], "a", id="resp_1"),
        make_call(2, [user("more")], "b", id="resp_2", previous="resp_1"),
        make_call(3, [user("other")], "c", id="resp_3", previous="resp_1"),
        make_call(4, [user("end")], "d", previous="resp_2"),
    )
    builder = ThreadBuilder(calls)
    assert [(draft.calls, draft.from_call) for draft in builder.drafts] == [([1, 2, 4], None), ([3], 1)]
    assert builder.links[2].new_from == 0


def test_a_thread_that_continues_a_message_by_its_id() -> None:
    settings = {"thread": {"type": "continue", "previous_message_id": "msg_1"}}
    calls = (make_call(1, [HI], "a", id="msg_1"), make_call(2, [user("more")], "b", settings=settings))
    assert threads(*calls) == [[1, 2]]


def test_a_conversation_that_the_provider_holds() -> None:
    calls = (
        make_call(1, [HI], "a", settings={"conversation": "conv_1"}),
        make_call(2, [HI], "b", settings={"conversation": {"id": "conv_2"}}),
        make_call(3, [user("more")], "c", settings={"conversation": {"id": "conv_1"}}),
    )
    assert threads(*calls) == [[1, 3], [2]]


def test_a_tool_that_the_provider_ran_may_be_left_out_of_history() -> None:
    search = assistant(ToolCall("s", "web_search", "{}", "server"), ToolResult("s", None, "x", kind="server"), "so")
    links = weave(make_call(1, [S, HI], search), make_call(2, [S, HI, assistant("so"), user("more")], "a"))
    assert (links[1].relation, links[1].parent, links[1].detail) == ("continues", 1, None)


def test_a_compacted_conversation_continues_in_a_new_thread() -> None:
    summary = "The user wants a house with three rooms; two are drawn, and the roof is still missing."
    builder = ThreadBuilder(
        (
            make_call(1, [S, HI], "a", offers=tools("t")),
            make_call(2, [S, HI, assistant("a"), user("Sum up.")], summary, offers=tools("t")),
            make_call(3, [S, user(f"This goes on from: {summary}"), user("the roof")], "b", offers=tools("t")),
        )
    )
    assert builder.links[3].relation == "compaction"
    assert [(draft.calls, draft.from_call) for draft in builder.drafts] == [([1, 2], None), ([3], 2)]


def test_a_pipeline_that_hands_an_answer_to_another_agent_is_no_compaction() -> None:
    text = "A poem about the sea, which is blue, and wide, and never the same twice."
    editor = system("You are an editor who is never content. Say what to mend, in three lines.")
    calls = (make_call(1, [S, HI], text), make_call(2, [editor, user(text)], "mend it", offers=tools("x")))
    assert weave(*calls)[1].relation == "first"


def test_sessions_that_the_client_names_apart_are_never_one_thread() -> None:
    history = [S, HI, assistant("a"), user("b")]
    calls = (
        make_call(1, [S, HI], "a", headers={"x-session-id": "one"}),
        make_call(2, history, "c", headers={"x-session-id": "two"}),
    )
    builder = ThreadBuilder(calls)
    assert [draft.calls for draft in builder.drafts] == [[1], [2]]


def test_examples_in_the_prompt_do_not_link_conversations() -> None:
    examples = [user("2+2?"), assistant("4")]
    calls = (make_call(1, [S, *examples, user("3+3?")], "6"), make_call(2, [S, *examples, user("4+4?")], "8"))
    assert weave(*calls)[1].relation == "first"


def test_new_message_objects_are_linked_like_shared_ones() -> None:
    history = [S, HI, assistant("a"), user("b"), assistant("c"), user("d")]
    calls = [make_call(1, history[:2], "a"), make_call(2, history[:4], "c"), make_call(3, history, "e")]
    fresh = [replace(c, request=replace(c.request, messages=tuple(map(replace, c.request.messages)))) for c in calls]
    assert [vars_of(link) for link in weave(*calls)] == [vars_of(link) for link in weave(*fresh)]


def vars_of(link: ThreadPlace) -> tuple[object, ...]:
    return (link.relation, link.parent, link.new_from, link.thread)


def test_reminders_that_come_and_go_do_not_count() -> None:
    reminded = Message("user", (Text("<system-reminder>be brief</system-reminder>"), Text("hi")))
    calls = (make_call(1, [S, reminded], "a"), make_call(2, [S, HI, assistant("a"), user("b")], "c"))
    assert threads(*calls) == [[1, 2]]


def test_a_prewarmed_request_is_outside_of_threads_and_can_be_continued() -> None:
    calls = (
        make_call(1, [S], id="warm", kind="prewarm"),
        make_call(2, [HI], "a", id="resp", previous="warm"),
        make_call(3, [user("b")], "c", previous="resp"),
    )
    assert threads(*calls) == [[2, 3]]
