from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.support.calls import asks, assistant, make_call, result, system, thinks, tools, user

from wiretape.analyze.diff.report import DiffReport, RunDifference
from wiretape.analyze.diff.runs import compare_runs
from wiretape.compare.mask import Masker
from wiretape.errors import UsageError
from wiretape.model.call import Message, ModelCall, Usage
from wiretape.runs.run import build_run

HI, MORE = user("what is the weather in Paris?"), user("and in Rome?")
PROMPT = "You are an assistant. Today is {}."


def compared(a: Sequence[ModelCall], b: Sequence[ModelCall], *masks: str) -> DiffReport:
    return compare_runs(build_run(a), build_run(b), masks)


def first(a: Sequence[ModelCall], b: Sequence[ModelCall]) -> RunDifference:
    found = compared(a, b).first
    assert found is not None
    return found


def loop(
    *,
    city: str = "Paris",
    said: str = "18 degrees",
    answer: str = "It is 18 degrees.",
    id: str = "call_1",
    clock: str = "2026-02-28 15:05:30",
    usage: Usage | None = None,
) -> list[ModelCall]:
    """One turn of two calls around one tool."""
    ask = assistant(thinks("I should look."), asks("weather", f'{{"city": "{city}"}}', id))
    prompt = system(PROMPT.format(clock))
    offers = tools("weather")
    return [
        make_call(1, [prompt, HI], ask, offers=offers, usage=usage),
        make_call(2, [prompt, HI, ask, result(said, id)], answer, offers=offers, usage=usage),
    ]


def test_a_run_is_the_same_as_itself() -> None:
    found = compared(loop(), loop())
    assert found.same
    assert [(turn.pairs, turn.differences, turn.varied) for turn in found.turns] == [([(1, 1), (2, 2)], [], [])]


def test_ids_clocks_spelling_and_tokens_are_no_difference_but_clocks_are_shown() -> None:
    other = loop(id="call_2", clock="2026-03-01 09:00:00", usage=Usage(input=5))
    spelled = assistant(thinks("I should look."), asks("weather", '{ "city":"Paris" }', "call_2"))
    assert other[1].request.messages[2].role == "assistant"
    messages = (*other[1].request.messages[:2], spelled, other[1].request.messages[3])
    other[1] = replace(other[1], request=replace(other[1].request, messages=messages))
    found = compared(loop(), other)
    assert found.same
    [once] = [(one.path, one.a, one.b) for one in found.turns[0].varied if one.call_a == 1]
    assert once == ("messages[0].content", "2026-02-28 15:05:30", "2026-03-01 09:00:00")


def test_the_first_divergence_is_the_answer_and_not_what_follows_from_it() -> None:
    found = compared(loop(), loop(city="Rome", said="21 degrees", answer="It is 21 degrees."))
    assert found.first == RunDifference(
        call_a=1, call_b=1, path="answer.tool_calls[0].arguments.city", a="Paris", b="Rome", what="answer"
    )
    assert [(one.call_a, one.path) for one in found.turns[0].differences] == [
        (1, "answer.tool_calls[0].arguments.city"),
        (2, "messages[3].content"),
        (2, "answer.text"),
    ]


def test_a_tool_that_answered_differently_is_told_with_both_results() -> None:
    found = first(loop(), loop(said="21 degrees"))
    assert (found.call_a, found.path, found.a, found.b) == (2, "messages[3].content", "18 degrees", "21 degrees")


def test_long_texts_are_cut_with_an_ellipsis_at_each_cut_end() -> None:
    start, end = "rain " * 20, " wind" * 60
    found = first(loop(said=f"{start}sun{end}"), loop(said=f"{start}fog"))
    assert found.a == "…" + ("rain " * 8 + "sun" + end)[:158] + "…"
    assert found.b == "…" + "rain " * 8 + "fog"


def test_results_that_are_json_are_compared_member_by_member() -> None:
    found = first(
        loop(said='{"at": "15:05:30", "sky": {"rain": 1}}'), loop(said='{"sky": {"rain": 2}, "at": "09:00:00"}')
    )
    assert (found.path, found.a, found.b) == ("messages[3].content.sky.rain", "1", "2")


def test_another_system_prompt_model_tool_or_setting_is_named_for_what_it_is() -> None:
    base = make_call(1, [system("p one"), HI], "x", offers=tools("a", "b"), settings={"temperature": 0, "user": "u1"})
    variants = {
        "system": make_call(1, [system("p two"), HI], "x", offers=tools("a", "b"), settings={"temperature": 0}),
        "model": replace(base, request=replace(base.request, model="n")),
        "tools": replace(base, request=replace(base.request, tools=tools("a", "c"))),
        "order of tools": replace(base, request=replace(base.request, tools=tools("b", "a"))),
        "settings": replace(base, request=replace(base.request, settings={"temperature": 1})),
    }
    for what, other in variants.items():
        assert first([base], [other]).what == what
    assert first([base], [variants["tools"]]).a == "b"
    assert first([base], [variants["settings"]]).path == "temperature"
    moved = replace(base, request=replace(base.request, settings={"temperature": 0, "user": "u2", "stream": True}))
    assert compared([base], [moved]).same


def test_dropped_reasoning_in_a_history_is_a_difference() -> None:
    other = loop()
    bare = assistant(asks("weather", '{"city": "Paris"}', "call_1"))
    messages = (*other[1].request.messages[:2], bare, other[1].request.messages[3])
    other[1] = replace(other[1], request=replace(other[1].request, messages=messages))
    found = first(loop(), other)
    assert (found.call_a, found.path, found.a) == (2, "messages[2].content[0]", "I should look.")


def test_an_id_that_links_another_call_is_a_difference() -> None:
    ask = assistant(asks("a", "{}", "1"), asks("b", "{}", "2"))
    start = make_call(1, [HI], ask)
    one = make_call(2, [HI, ask, result("x", "1"), result("y", "2")], "done")
    other = make_call(2, [HI, ask, result("x", "2"), result("y", "1")], "done")
    assert first([start, one], [start, other]).what == "history: an id that links something else"


def test_a_call_that_only_one_run_has_is_told_with_why_it_was_made() -> None:
    longer = loop()
    ask = assistant(asks("weather", '{"city": "Paris, France"}', "call_9"))
    longer[1] = make_call(2, longer[1].request.messages, ask, offers=tools("weather"))
    longer.append(
        make_call(3, [*longer[1].request.messages, ask, result("18", "call_9")], "18.", offers=tools("weather"))
    )
    found = compared(loop(), longer)
    assert [(one.call, one.why) for one in found.turns[0].only_b] == [(3, "answers weather from call 2")]
    assert (found.turns[0].a and found.turns[0].a.calls, found.turns[0].b and found.turns[0].b.calls) == (2, 3)
    assert found.first is not None
    assert found.first.path.startswith("answer")


def test_a_retry_in_the_second_run_only_is_no_divergence_of_what_was_said() -> None:
    failed = make_call(1, [HI], status=500)
    found = compared([make_call(1, [HI], "hello")], [failed, make_call(2, [HI], "hello")])
    assert not found.same
    assert len(found.turns[0].pairs) == 1


def test_turns_are_aligned_by_what_the_user_said() -> None:
    def talk(*words: str) -> list[ModelCall]:
        history: list[Message] = []
        calls = []
        for number, word in enumerate(words, 1):
            history.append(user(word))
            calls.append(make_call(number, list(history), f"about {word}"))
            history.append(assistant(f"about {word}"))
        return calls

    found = compared(talk("one", "two", "three"), talk("one", "three"))
    assert [(turn.turn_a, turn.turn_b) for turn in found.turns] == [(1, 1), (2, None), (3, 2)]
    assert found.first is not None
    assert (found.first.call_a, found.first.call_b, found.first.what) == (2, None, "call")


def test_the_order_among_parallel_agents_is_free() -> None:
    def run(order: tuple[str, ...]) -> list[ModelCall]:
        ask = assistant(
            *(asks(f"agent_{name}", f'{{"task": "look into the matter of {name}"}}', name) for name in "xy")
        )
        calls = [make_call(1, [HI], ask, offers=tools("agent_x", "agent_y"))]
        for number, name in enumerate(order, 2):
            task = user(f"look into the matter of {name}")
            calls.append(make_call(number, [system(f"You are {name}."), task], f"{name} is fine and well"))
        back = [result(f"{name} is fine and well", name) for name in "xy"]
        calls.append(make_call(4, [HI, ask, *back], "both fine", offers=tools("agent_x", "agent_y")))
        return calls

    found = compared(run(("x", "y")), run(("y", "x")))
    assert found.same
    assert found.turns[0].pairs == [(1, 1), (2, 3), (3, 2), (4, 4)]


def test_the_users_own_masks_count() -> None:
    one, other = [make_call(1, [user("order 4711")], "x")], [make_call(1, [user("order 4712")], "x")]
    assert not compared(one, other).same
    assert compared(one, other, r"order \d+").same
    with pytest.raises(UsageError, match=r"the mask '\(' is not a regular expression"):
        Masker(["("])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("今天是 2026年02月28日 15时05分30秒 星期六 。", "今天是 2026年03月01日 09时00分01秒 星期日 。"),
        ("at 2026-02-28T15:05:30.123Z", "at 2026-03-01T09:00:00.000Z"),
        ("run 123e4567-e89b-42d3-a456-426614174000", "run 00000000-e89b-42d3-a456-426614174999"),
        ("Saturday, February 28, 2026 at 3:05 PM", "Sunday, March 1, 2026 at 9:00 AM"),
        ("in /tmp/tmpab12cd/x.py", "in /tmp/tmpzz99yy/x.py"),
        ("asked by call_00_Fsa6XTMl6dbQxpR4", "asked by call_01_AAAAAAA1"),
        ("x-anthropic-billing-header: cch=a1b2c;", "x-anthropic-billing-header: cch=0f9e8;"),
        ("at 1767225600", "at 1772323200"),
        ("with [redacted:authorization:1]", "with [redacted:authorization:3]"),
    ],
)
def test_what_moves_between_any_two_runs_is_settled(one: str, other: str) -> None:
    settle = Masker().without_secrets
    assert settle(one) == settle(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("18 degrees", "19 degrees"),
        ("claude-sonnet-4", "claude-sonnet-5"),
        ("page 12", "page 13"),
        ("v1.2.3", "v1.2.4"),
    ],
)
def test_what_matters_is_not(one: str, other: str) -> None:
    settle = Masker().without_secrets
    assert settle(one) != settle(other)
