"""A miss names differences of the address and of the body."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.replaying import CHAT, chat, exchange, live, session, user

from wiretape.matching.values import Miss

GEMINI = "https://generativelanguage.googleapis.com/v1beta/models/{}:generateContent"
ASKED: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


def missed(outcome: object) -> Miss:
    assert isinstance(outcome, Miss), outcome
    return outcome


def story(message: str) -> list[str]:
    return message.splitlines()[1:-1]


def test_another_query_is_named_by_its_parameter_with_both_values() -> None:
    replay = session(exchange(1, chat(user("hi")), "one", url=f"{CHAT}?api-version=1&x=y"))
    found = missed(replay.answer(live(chat(user("hi")), url=f"{CHAT}?api-version=2&x=y")))
    assert found.reason == "diverged"
    assert story(found.message) == [
        "  it diverges from call 1 at query api-version",
        "    recorded  1",
        "    live      2",
    ]


def test_a_query_and_a_body_that_differ_are_both_named_and_no_id_is() -> None:
    replay = session(exchange(1, chat(user("hi"), temperature=1), "one", url=f"{CHAT}?v=1"))
    found = missed(replay.answer(live(chat(user("hi"), temperature=2))))
    assert [(d.where, str(d.recorded), str(d.live)) for d in found.differences] == [
        ("query v", "1", "(nothing)"),
        ("temperature", "1", "2"),
    ]


def test_a_redacted_key_in_the_query_is_no_difference() -> None:
    replay = session(exchange(1, ASKED, {}, url=GEMINI.format("a") + "?key=[redacted:api-key:1]&alt=json"))
    found = missed(replay.answer(live(ASKED, url=GEMINI.format("a") + "?key=AIzaSomething&alt=sse")))
    assert [d.where for d in found.differences] == ["query alt"]


@pytest.mark.parametrize("message", ["hi", "something else"])
def test_another_path_is_named(message: str) -> None:
    replay = session(exchange(1, ASKED, {}, url=GEMINI.format("gemini-a")))
    asked = {"contents": [{"role": "user", "parts": [{"text": message}]}]}
    found = missed(replay.answer(live(asked, url=GEMINI.format("gemini-b"))))
    assert found.reason == ("diverged" if message == "hi" else "never recorded")
    assert story(found.message)[0].endswith(" at path")
    assert story(found.message)[1:3] == [
        "    recorded  /v1beta/models/gemini-a:generateContent",
        "    live      /v1beta/models/gemini-b:generateContent",
    ]


def test_a_model_in_the_middle_of_a_path_is_named() -> None:
    url = "https://bedrock-runtime.eu-west-1.amazonaws.com/model/{}/converse"
    asked = {"messages": [{"role": "user", "content": [{"text": "hi"}]}]}
    replay = session(exchange(1, asked, {}, url=url.format("m-1")))
    found = missed(replay.answer(live(asked, url=url.format("m-2"))))
    assert [(d.where, d.recorded, d.live) for d in found.differences] == [
        ("path", "/model/m-1/converse", "/model/m-2/converse")
    ]


def test_the_prefix_of_a_gateway_is_not_named() -> None:
    replay = session(exchange(1, chat(user("hi"), temperature=1), "one"))
    gateway = "http://gateway.example.com/openai/v1/chat/completions"
    found = missed(replay.answer(live(chat(user("hi"), temperature=2), url=gateway)))
    assert [d.where for d in found.differences] == ["temperature"]


def test_a_clients_billing_nonce_is_not_named() -> None:
    url = "https://api.anthropic.com/v1/messages"

    def asked(nonce: str, words: str) -> dict[str, Any]:
        system = [{"type": "text", "text": f"x-anthropic-billing-header: cc_version=2.1.332.{nonce};"}]
        return {"model": "m", "max_tokens": 9, "system": system, "messages": [{"role": "user", "content": words}]}

    replay = session(exchange(1, asked("e10", "hi"), {}, url))
    found = missed(replay.answer(live(asked("4bb", "hello"), url)))
    assert [apart.where for apart in found.differences] == ["messages[0].content"]


def test_parallel_agents_with_one_prompt_are_told_apart_by_their_tasks() -> None:
    def asked(prompt: str, question: str) -> dict[str, Any]:
        return chat({"role": "system", "content": prompt}, user(question))

    questions = ["how tall?", "who built it?", "since when?"]
    replay = session(*(exchange(n, asked("Answer.", one), "42") for n, one in enumerate(questions, 1)))
    for number, question in enumerate(questions, 1):
        found = missed(replay.answer(live(asked("Answer well.", question))))
        assert (found.reason, str(found.nearest)) == ("diverged", f"call {number}")
        assert [d.where for d in found.differences] == ["messages[0].content"]


def tool(name: str, **function: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, **function}}


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (["new", "a", "b", "c"], [("tools[0]", "(nothing)", str(tool("new")))]),
        (["a", "c"], [("tools[1]", str(tool("b")), "(nothing)")]),
        (["a", "other", "c"], [("tools[1].function.name", "b", "other")]),
        (["c", "a", "b"], [("tools (order)", "a, b, c", "c, a, b")]),
        (["a", "c", "b", "new"], [("tools[3]", "(nothing)", str(tool("new"))), ("tools (order)", "b, c", "c, b")]),
    ],
)
def test_tools_are_told_apart_by_their_names(now: list[str], told: list[tuple[str, str, str]]) -> None:
    replay = session(exchange(1, chat(user("hi"), tools=[tool(name) for name in "abc"]), "one"))
    found = missed(replay.answer(live(chat(user("hi"), tools=[tool(name) for name in now]))))
    assert [(d.where, str(d.recorded), str(d.live)) for d in found.differences] == told


def test_a_changed_tool_is_reported_at_its_live_path() -> None:
    replay = session(exchange(1, chat(user("hi"), tools=[tool("a", description="old")]), "one"))
    asked = chat(user("ho"), tools=[tool("new"), tool("a", description="better")])
    found = missed(replay.answer(live(asked)))
    assert story(found.message)[0].endswith(" differs from its start at messages[0].content")
    assert "  and at tools[1].function.description" in story(found.message)
    assert "  and at tools[0]" in story(found.message)
