"""Whether a tape is up to date: what counts as a change, and what does not."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.replaying import CHAT, calls, chat, exchange, reply, response, result, system, user
from tests.support.taping import STARTED

from wiretape.compare.difference import Tier
from wiretape.matching.values import ReplayOptions
from wiretape.matching.verify.answer_shape import usage_differences
from wiretape.matching.verify.freshness import CallFreshness, Freshness, freshness
from wiretape.matching.verify.pairing import unanswered
from wiretape.model.call import Usage
from wiretape.model.http import Ended, Exchange, Headers
from wiretape.tape.format.documents import Header
from wiretape.tape.reading.reader import Tape

TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
PROMPT = "You are careful. " * 20


def tape(*exchanges: Exchange, days: int = 0, **header: Any) -> Tape:
    started = STARTED + timedelta(days=days)
    return Tape(Path(f"{days}.tape"), Header(started=started, recorder="w", **header), exchanges)


def asks(arguments: str, id: str = "call_1", model: str = "m-1", finish: str = "tool_calls", **usage: int) -> Any:
    message = calls("weather", arguments, id)
    choice = {"index": 0, "message": message, "finish_reason": finish}
    made: dict[str, Any] = {"id": "chatcmpl-1", "object": "chat.completion", "model": model, "choices": [choice]}
    return {**made, "usage": usage} if usage else made


def loop(
    clock: str = "2026-03-01",
    city: str = "Oslo",
    found: str = "4 degrees",
    said: str = "It is cold.",
    id: str = "call_1",
    **settings: Any,
) -> list[Exchange]:
    """A run of two calls: a tool call, then the answer."""
    head = [system(f"{PROMPT} Today is {clock}."), user("weather?")]
    settings = {"tools": TOOLS, **settings}
    asked = f'{{"city":"{city}"}}'
    history = [*head, calls("weather", asked, id), result(id, found)]
    return [exchange(1, chat(*head, **settings), asks(asked, id)), exchange(2, chat(*history, **settings), reply(said))]


def compared(old: list[Exchange], new: list[Exchange], **options: Any) -> Freshness:
    return freshness(tape(*old), tape(*new, days=40), ReplayOptions(**options))


def told(found: Freshness) -> list[tuple[int | None, str, str, str, str]]:
    return [(call.live, one.side, one.where, one.recorded, one.live) for call in found.calls for one in call.changes]


def test_clocks_ids_and_wording_do_not_count() -> None:
    found = compared(loop(), loop(clock="2026-11-30", id="call_9", said="Quite cold, I'd say."))
    assert not found.drifted
    assert [(call.verdict, call.recorded, call.live, call.tier) for call in found.calls] == [
        ("same", 1, 1, "masked"),
        ("same", 2, 2, "masked"),
    ]
    assert (found.age_days, found.tape, found.live) == (40, "0.tape", "40.tape")


def test_other_wording_of_a_model_and_the_tool_results_after_it_do_not_count() -> None:
    found = compared(loop(city="Oslo", found="4 degrees"), loop(city="Bergen", found="9 degrees"))
    assert not found.drifted
    assert [call.tier for call in found.calls] == ["exact", None]


def test_another_tool_result_for_the_same_arguments_is_a_change() -> None:
    found = compared(loop(found="4 degrees"), loop(found="4 degrees, and windy"))
    assert found.drifted
    assert told(found) == [(2, "request", "messages[3]", "4 degrees", "4 degrees, and windy")]


def test_a_changed_prompt_is_reported_once_at_its_first_call() -> None:
    old, new = loop(), loop()
    for one in new:
        body = one.request.body.value  # type: ignore[union-attr]
        body["messages"][0] = system(PROMPT.replace("careful", "bold") + " Today is 2026-03-01.")
    found = compared(old, new)
    assert [(call.verdict, len(call.changes)) for call in found.calls] == [("changed", 1), ("changed", 0)]
    assert [call.again for call in found.calls] == [False, True]
    assert told(found)[0][:3] == (1, "request", "messages[0]")


def test_settings_tools_and_models_are_parts_of_a_request() -> None:
    other = [
        {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "required": ["city"]}}}
    ]
    new = loop(temperature=1, tools=[*other, {"type": "function", "function": {"name": "time"}}])
    for one in new:
        one.request.body.value["model"] = "m-2"  # type: ignore[union-attr]
    found = compared(loop(temperature=0), new)
    assert {(where, live) for _, side, where, _, live in told(found) if side == "request"} >= {
        ("model", "m-2"),
        ("temperature", "1"),
        ("tools time", "time"),
    }
    assert "tools weather.function.parameters.required" in {where for _, _, where, *_ in told(found)}
    assert [call.again for call in found.calls] == [False, True], "told once"


@pytest.mark.parametrize(
    ("answer", "where", "recorded", "live"),
    [
        (asks('{"city":"Oslo","unit":"C"}'), "tool calls", "weather(city)", "weather(city, unit)"),
        (reply("It is cold."), "blocks", "tool call", "text"),
        (reply("It is cold."), "finish", "tool_calls", "stop"),
        (asks('{"city":"Oslo"}', finish="length"), "finish", "tool_calls", "length"),
        (response({"error": {"message": "gone", "type": "no_model"}}, 404), "status", "200", "404"),
        (response({"error": {"message": "gone", "type": "no_model"}}, 404), "error", "(nothing)", "no_model"),
    ],
)
def test_the_shape_of_an_answer_counts(answer: Any, where: str, recorded: str, live: str) -> None:
    old = exchange(1, chat(user("weather?")), asks('{"city":"Oslo"}'))
    found = compared([old], [exchange(1, chat(user("weather?")), answer)])
    assert (1, "answer", where, recorded, live) in told(found)
    assert found.drifted


LIMITED = response({"error": {"message": "slow", "type": "rate_limit"}}, 429)


@pytest.mark.parametrize("answer", [LIMITED, response({"error": {"type": "overloaded_error"}}, 529), None])
def test_a_call_without_an_answer_is_undecided(answer: Any) -> None:
    new = exchange(1, chat(user("weather?")), answer)
    if answer is None:
        new = replace(new, response=None, ended=Ended.UPSTREAM_UNREACHABLE)
    found = compared([exchange(1, chat(user("weather?")), asks('{"city":"Oslo"}'))], [new])
    assert ([call.verdict for call in found.calls], found.drifted) == (["unanswered"], False)
    assert [one[2:] for one in told(found)][:1] == [
        ("status", "200", str(answer.status) if answer is not None else "no response (upstream_unreachable)")
    ]
    assert not {"finish", "blocks", "tool calls"} & {where for _, _, where, *_ in told(found)}, "these follow from it"
    asked = replace(new, request=exchange(1, chat(user("wetter?"))).request)
    assert [call.verdict for call in compared([exchange(1, chat(user("weather?")))], [asked]).calls] == ["changed"]


def test_a_failed_attempt_that_was_retried_is_not_compared() -> None:
    once = loop()
    limited = exchange(1, once[0].request.body.value, LIMITED)  # type: ignore[union-attr]
    again = [limited, replace(once[0], number=2, at=300), replace(once[1], number=3, at=600)]
    for old, new, numbers in ((once, again, [(1, 2), (2, 3)]), (again, once, [(2, 1), (3, 2)])):
        found = compared(old, new)
        assert [(call.recorded, call.live) for call in found.calls] == numbers
        assert (found.drifted, found.tried_again, {call.verdict for call in found.calls}) == (False, 1, {"same"})
    assert unanswered(tape(*again)) == []
    assert [call.exchange for call in unanswered(tape(once[0], replace(limited, number=2, at=300)))] == [2]


def test_another_placeholder_number_does_not_count() -> None:
    old = [exchange(1, chat(user("my key is [redacted:authorization:2], greet me")))]
    assert not compared(old, [exchange(1, chat(user("my key is [redacted:authorization:1], greet me")))]).drifted
    found = compared(old, [exchange(1, chat(user("my key is [redacted:authorization:1], greet us")))])
    recorded = "my key is [redacted:authorization:2], greet "
    assert [one[3:] for one in told(found)] == [(recorded + "me", recorded + "us")]


def test_another_shape_of_an_answer_is_reported_once() -> None:
    old, new = loop(), loop()
    spoken = {**calls("weather", '{"city":"Oslo"}', "call_1"), "content": "Let me look."}
    new[0].response.body.value["choices"][0]["message"] = spoken  # type: ignore[union-attr]
    new[1].request.body.value["messages"][2] = spoken  # type: ignore[union-attr]
    found = compared(old, new)
    assert told(found) == [(1, "answer", "blocks", "tool call", "text, tool call")]
    assert [call.verdict for call in found.calls] == ["changed", "same"]


def test_a_change_of_the_program_in_a_history_is_reported() -> None:
    old, new = loop(), loop()
    new[1].request.body.value["messages"][2]["content"] = "I looked."  # type: ignore[union-attr]
    new[1].request.body.value["messages"].append(user("hurry"))  # type: ignore[union-attr]
    assert told(compared(old, new)) == [
        (2, "request", "messages[2] blocks", "tool call", "text, tool call"),
        (2, "request", "messages", "4", "5"),
    ]
    parts = [{"type": "text", "text": "look"}, {"type": "text", "text": "closely"}]
    found = compared([exchange(1, chat(user("look")))], [exchange(1, chat({"role": "user", "content": parts}))])
    assert told(found) == [(1, "request", "messages[0]", "(nothing)", "closely")]


def test_another_values_of_the_same_arguments_is_the_same_shape() -> None:
    old = exchange(1, chat(user("weather?")), asks('{"city":"Oslo"}'))
    new = exchange(1, chat(user("weather?")), asks('{"city": "Rome"}', id="call_7"))
    assert not compared([old], [new]).drifted


def test_the_model_that_answered_counts() -> None:
    old = exchange(1, chat(user("weather?")), asks("{}", model="m-1-0801"))
    new = exchange(1, chat(user("weather?")), asks("{}", model="m-1-1101"))
    assert told(compared([old], [new])) == [(1, "model", "model", "m-1-0801", "m-1-1101")]


def test_usage_counts_beyond_a_tolerance() -> None:
    old = exchange(1, chat(user("w")), asks("{}", prompt_tokens=1000, completion_tokens=20))
    new = exchange(1, chat(user("w")), asks("{}", prompt_tokens=1300, completion_tokens=60))
    assert told(compared([old], [new])) == [(1, "usage", "usage input", "1000", "1300")]
    assert not freshness(tape(old), tape(new), tolerance=0.5).drifted
    without = exchange(1, chat(user("w")), asks("{}"))
    assert told(compared([old], [without]))[0] == (1, "usage", "usage input", "1000", "(nothing)")


def test_tokens_that_nobody_counts_are_no_change_and_few_are_none() -> None:
    assert not list(usage_differences(None, None, 0))
    assert not list(usage_differences(Usage(input=10, output=1), Usage(input=50, output=40), 0))
    assert not list(usage_differences(Usage(input=10, reasoning=0), Usage(input=10), 0))
    assert [one.where for one in usage_differences(Usage(input=1), Usage(input=1, reasoning=99), 0)] == [
        "usage reasoning"
    ]


def test_new_and_vanished_calls_are_reported() -> None:
    old = [exchange(n, chat(user(text))) for n, text in enumerate(("one", "two", "three"), 1)]
    new = [exchange(n, chat(user(text))) for n, text in enumerate(("three", "one"), 1)]
    assert [(c.verdict, c.recorded, c.live) for c in compared(old, new).calls] == [
        ("same", 3, 1),
        ("same", 1, 2),
        ("vanished", 2, None),
    ]
    found = compared(new, old)
    assert [(c.verdict, c.recorded, c.live) for c in found.calls] == [
        ("same", 2, 1),
        ("new", None, 2),
        ("same", 1, 3),
    ]
    assert (found.drifted, found.count("new"), found.count("same")) == (True, 1, 2)


def test_a_longer_loop_is_reported_at_its_first_new_call() -> None:
    old = loop()
    head = old[1].request.body.value["messages"]  # type: ignore[union-attr]
    more = [*head, calls("weather", '{"city":"Rome"}', "call_2"), result("call_2", "20 degrees")]
    new = [old[0], exchange(2, chat(*head, tools=TOOLS), asks('{"city":"Rome"}', "call_2"))]
    new.append(exchange(3, chat(*more, tools=TOOLS), reply("Cold, and warm.")))
    found = compared(old, new)
    assert [(call.verdict, call.recorded, call.live) for call in found.calls] == [
        ("same", 1, 1),
        ("changed", 2, 2),
        ("new", None, 3),
    ]
    assert {where for _, _, where, *_ in told(found)} == {"blocks", "finish", "tool calls"}


def test_the_loosest_tier_and_the_masks_are_asked_for() -> None:
    old = [exchange(1, chat(user("ticket ABC-1")))]
    new = [exchange(1, chat(user("ticket XYZ-7")))]
    assert compared(old, new).drifted
    assert not compared(old, new, mask=(r"[A-Z]{3}-\d",)).drifted
    clock = [exchange(1, chat(user("it is 12:30:00"))), exchange(1, chat(user("it is 18:45:10")))]
    assert not compared(clock[:1], clock[1:]).drifted
    exact = compared(clock[:1], clock[1:], tier=Tier.EXACT)
    assert [call.tier for call in exact.calls] == [None]


def test_other_versions_explain_and_do_not_make_a_tape_out_of_date() -> None:
    old, new = tape(*loop(), client={"user-agent": "sdk/1", "originator": "cli"}), tape(*loop())
    first = new.exchanges[0]
    spoke = replace(first.request, headers=Headers([("user-agent", "sdk/2"), ("originator", "cli")]))
    found = freshness(old, replace(new, exchanges=(replace(first, request=spoke), *new.exchanges[1:])))
    assert not found.drifted
    assert [(one.header, one.recorded, one.live) for one in found.versions] == [("user-agent", ("sdk/1",), ("sdk/2",))]


def test_two_agents_at_once_are_told_apart() -> None:
    """The threads' calls come in another order, and one prompt has changed: the other agent is not concerned."""

    def agent(n: int, name: str, last: str) -> list[Exchange]:
        head = [system(f"{PROMPT} You are {name}."), user(f"work, {name}")]
        history = [*head, calls("weather", "{}", f"call_{n}"), result(f"call_{n}", "done")]
        return [
            exchange(n, chat(*head, tools=TOOLS), asks("{}", f"call_{n}")),
            exchange(n + 2, chat(*history, tools=TOOLS), reply(last)),
        ]

    left, right = agent(1, "left", "bye"), agent(2, "right", "ok")
    changed = agent(1, "right and quick", "ok")
    found = compared([left[0], right[0], left[1], right[1]], [changed[0], agent(2, "left", "bye")[0], changed[1]])
    by_live: dict[int | None, CallFreshness] = {call.live: call for call in found.calls if call.live}
    assert [(by_live[n].recorded, by_live[n].verdict) for n in (1, 2, 3)] == [
        (2, "changed"),
        (1, "same"),
        (4, "changed"),
    ]
    assert [call.recorded for call in found.calls if call.live is None] == [3]


def test_a_tape_without_calls_is_compared_too() -> None:
    assert compared([], []).calls == ()
    page = exchange(1, None, response({}), url="https://example.com/page", method="GET")
    assert not compared([page], []).drifted


def test_another_address_is_no_change_and_another_path_is() -> None:
    old = [exchange(1, chat(user("x")))]
    assert not compared(old, [exchange(1, chat(user("x")), url=CHAT.replace("api.example", "gate.corp"))]).drifted
