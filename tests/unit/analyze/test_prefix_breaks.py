from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.calls import asks, assistant, make_call, result, system, thinks, tools, user

from wiretape.analyze.findings import findings
from wiretape.analyze.prefix_breaks import breaks, text_break
from wiretape.model.call import CallRequest, Message, Text, ToolSpec
from wiretape.runs.run import build_run

MEND = "to mend it: say the time in the last user message, or not at all"
S, HI, MORE = system("be kind"), user("hi"), user("more")


def request(*messages: Message, offers: tuple[ToolSpec, ...] = ()) -> CallRequest:
    return make_call(1, messages, offers=offers).request


def said(before: CallRequest, after: CallRequest) -> list[str]:
    return [str(found) for found in breaks(before, after)]


def test_a_history_that_only_grows_breaks_nowhere() -> None:
    assert said(request(S, HI), request(S, HI, assistant("a"), MORE)) == []


def test_equal_messages_made_anew_are_no_break() -> None:
    assert said(request(S, HI), request(replace(S), replace(HI), MORE)) == []


def test_a_moved_cache_marker_is_no_break() -> None:
    assert said(request(S, replace(HI, cache_marked=True)), request(S, HI, MORE)) == []


def test_a_clock_in_the_system_prompt() -> None:
    clock = "今天是 2026年02月28日 {} 星期六 。# 角色\n你是一名强子开发的智能客服。\n\n"
    before, after = system(clock.format("15时05分30秒")), system(clock.format("15时23分47秒"))
    assert said(request(before, HI), request(after, HI, MORE)) == [
        "messages[0].content, character 19: a clock: '15时05分30秒' became '15时23分47秒'"
    ]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (assistant(thinks("hm"), "a"), assistant("a"), "messages[1].content[0]: reasoning: 'hm' is gone"),
        (
            assistant("a", asks("f")),
            assistant("a"),
            "messages[1].content[1]: a block: 'f({})' is gone",
        ),
        (assistant("a"), user("a"), "messages[1]: another message: 'assistant: a' became 'user: a'"),
        (result("x", "1"), result("x", "2"), "messages[1].content: another id: '1' became '2'"),
        (
            assistant(asks("f", '{"n": 1}')),
            assistant(asks("f", '{"n": 2}')),
            "messages[1].content[0], character 8: a number: '1' became '2'",
        ),
        (
            Message("user", (Text("a"),), (".content",), (("name", "bob"),)),
            Message("user", (Text("a"),), (".content",)),
            "messages[1]: other members changed: '{\"name\":\"bob\"}' became '{}'",
        ),
        (
            user("[12:01] build"),
            user("[12:02] build"),
            "messages[1].content, character 5: a clock: '12:01' became '12:02'",
        ),
    ],
)
def test_the_first_difference_in_messages(before: Message, after: Message, expected: str) -> None:
    assert said(request(S, before, HI), request(S, after, HI)) == [expected]


def test_a_history_that_was_cut_short() -> None:
    assert said(request(S, HI, MORE), request(S, HI)) == ["messages[2]: the history ends earlier: 'more' is gone"]


def test_tools_that_changed_and_messages_that_changed_are_both_named() -> None:
    found = said(request(S, HI, offers=tools("a", "b")), request(user("x"), HI, offers=tools("b", "a")))
    assert found[0] == "tools[0]: another order of the tools: 'a, b' became 'b, a'"
    assert found[1].startswith("messages[0]: another message")


@pytest.mark.parametrize(
    ("schema", "other", "expected"),
    [
        ({"r": ["a", "b"]}, {"r": ["b", "a"]}, "tools[0].r[0], character 0: a tool's definition: 'a' became 'b'"),
        ({"r": ["a"]}, {"r": ["a", "b"]}, "tools[0].r[1]: a tool's definition: '1 elements' became '2 elements'"),
        (
            {"a": 1, "b": 2},
            {"b": 2, "a": 1},
            "tools[0]: a tool's definition, in the order of its keys: 'a, b' became 'b, a'",
        ),
        ({"a": 1}, {}, "tools[0].a: a tool's definition: '1' is gone"),
        ({}, {"a": 1}, "tools[0].a: a tool's definition: '1' is new"),
    ],
)
def test_where_a_tool_changed(schema: dict[str, object], other: dict[str, object], expected: str) -> None:
    before, after = (ToolSpec("t", None, {}, "function", raw) for raw in (schema, other))
    assert said(request(HI, offers=(before,)), request(HI, offers=(after,))) == [expected]


def test_a_tool_more_and_a_tool_less() -> None:
    assert said(request(HI, offers=tools("a")), request(HI, offers=tools("a", "b"))) == [
        "tools[1]: another tool: 'b' is new"
    ]
    assert said(request(HI, offers=tools("a", "b")), request(HI, offers=tools("a"))) == [
        "tools[1]: another tool: 'b' is gone"
    ]


def test_a_history_that_the_provider_holds_cannot_be_compared() -> None:
    chained = make_call(2, [MORE], previous="resp_1").request
    assert breaks(request(S, HI), chained) == []


def test_every_thread_is_compared_with_itself_only() -> None:
    one, other = system("one agent, at 10:00 sharp"), system("quite another kind of speaker")
    run = build_run(
        [
            make_call(1, [one, HI], "a", offers=tools("x")),
            make_call(2, [other, HI], "b", offers=tools("y")),
            make_call(3, [system("one agent, at 10:05 sharp"), HI, assistant("a"), MORE], "c", offers=tools("x")),
            make_call(4, [other, HI, assistant("b"), MORE], "d", offers=tools("y")),
        ]
    )
    place = "messages[0].content, character 18: a clock: '10:00' became '10:05'"
    assert [(finding.call, finding.text) for finding in findings(run) if finding.kind == "prefix_break"] == [
        (3, f"prefix breaks at {place} (compared with call 1); {MEND}")
    ]


def test_a_clock_that_moves_at_every_call_is_said_once() -> None:
    history, calls = [HI], []
    for number in range(1, 5):
        calls.append(make_call(number, [system(f"It is 10:0{number} now, and you are kind."), *history], f"a{number}"))
        history += [assistant(f"a{number}"), user(f"more {number}")]
    place = "messages[0].content, character 10: a clock: '10:01' became '10:02'"
    assert [finding.text for finding in findings(build_run(calls)) if finding.kind == "prefix_break"] == [
        f"prefix breaks at {place} (compared with call 1); there again in 2 later calls of the thread, last in call 4; "
        + MEND
    ]


UUIDS = ("0b9c2a10-7d0e-4a55-9c2b-7f0e9d3c1a22", "5d1e8f77-1c34-4b0a-8a3f-2f6b7c8d9e00")


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("a clock", "15时05分30秒", "15时23分47秒"),
        ("a clock", "15:05:30", "15:23:47"),
        ("a clock", "2026-02-28T15:05:30Z", "2026-02-28T15:23:47Z"),
        ("a clock", "9:05 AM", "9:06 AM"),
        ("a date", "2026年02月28日", "2026年03月01日"),
        ("a date", "2026-02-28", "2026-03-01"),
        ("a date", "Feb 28, 2026", "Mar 1, 2026"),
        ("a weekday", "星期六", "星期日"),
        ("a weekday", "Saturday", "Sunday"),
        ("a uuid", *UUIDS),
        ("a unix time", "1772262330", "1772263427"),
        ("a temporary path", "/tmp/run-a81/x.txt", "/tmp/run-b77/x.txt"),
        ("a nonce", "cch=ab12c", "cch=9f00d"),
        ("a nonce", "k3J9xQ2mLp", "k3J9zz8AbC"),
        ("a number", "17", "18"),
        ("other text", "morning", "evening"),
    ],
)
def test_what_kind_of_thing_changed_and_both_values(kind: str, before: str, after: str) -> None:
    found = text_break("x", f"Today is {before}  and so on", f"Today is {after}  and so on")
    assert found.what == kind
    if kind == "other text":
        assert found.before.startswith(before)
        assert found.after.startswith(after)
    elif kind == "a nonce" and "=" in before:
        assert (found.before, found.after) == ("ab12c", "9f00d")
    else:
        assert (found.before, found.after) == (before, after)


def test_the_character_counts_from_nought() -> None:
    assert text_break("x", "今天是 15时05分", "今天是 15时23分").character == 7


def test_only_the_neighbourhood_of_a_long_text_is_read() -> None:
    found = text_break("x", "x" * 100_000 + "12:30" + "y" * 100_000, "x" * 100_000 + "12:31" + "y" * 100_000)
    assert (found.character, found.before, found.after) == (100_004, "12:30", "12:31")


def test_text_that_was_only_added() -> None:
    found = text_break("x", "all is well", "all is well, and more")
    assert (found.what, found.character, found.before) == ("other text", 11, "well")


@given(st.text(), st.text())
def test_any_two_texts_differ_somewhere(old: str, new: str) -> None:
    if old != new:
        found = text_break("x", old, new)
        assert old[: found.character] == new[: found.character]
        assert old[found.character : found.character + 1] != new[found.character : found.character + 1]
