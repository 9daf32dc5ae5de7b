from __future__ import annotations

import pytest
from tests.support.calls import asks, assistant, result, system, thinks, user

from wiretape.model.call import Media, Message, Text, ToolCall, ToolResult, Unknown
from wiretape.runs.content_keys import ContentKeys, atoms, canonical

IMAGE = {"type": "image_url", "image_url": {"url": "data:…"}}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (assistant(asks("f", '{"a": 1, "b": [2]}', "x")), assistant(asks("f", '{"b":[2],"a":1}', "y"))),
        (assistant(thinks("hm"), "yes"), assistant("yes")),
        (assistant("yes\n"), assistant("", "yes")),
        (result("x", id="1", name="f"), result("x", id="2")),
        (Message("user", (Media("image", IMAGE),)), Message("user", (Media("image", {**IMAGE, "cache_control": {}}),))),
        (
            Message("assistant", (Media("image", {"inlineData": {"mimeType": "a/b"}, "thoughtSignature": "c2ln"}),)),
            Message("assistant", (Media("image", {"inline_data": {"mime_type": "a/b"}}),)),
        ),
        (Message("assistant", (Unknown("new", {"id": 1}),)), Message("assistant", (Unknown("new", {"id": 2}),))),
        (Message("tool", (ToolResult("1", None, "x"),)), Message("user", (ToolResult("1", None, "x"),))),
        (system("one"), system("another")),
    ],
    ids=lambda message: "",
)
def test_the_same_content_however_it_is_resent(one: Message, other: Message) -> None:
    keys = ContentKeys()
    assert keys.of(one) == keys.of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (user("yes"), assistant("yes")),
        (user("yes"), user("no")),
        (assistant(asks("f", '{"a": 1}')), assistant(asks("f", '{"a": 2}'))),
        (assistant(asks("f")), assistant(asks("g"))),
        (result("x"), user("x")),
        (Message("tool", (ToolResult("1", None, ""),)), Message("tool", (ToolResult("1", None, "", parts=(IMAGE,)),))),
        (assistant("a"), assistant("a", asks("f"))),
    ],
    ids=lambda message: "",
)
def test_other_content_has_other_keys(one: Message, other: Message) -> None:
    keys = ContentKeys()
    assert keys.of(one) != keys.of(other)


def test_a_call_before_and_after_text_keeps_its_place() -> None:
    keys = ContentKeys()
    assert keys.of(assistant("a", asks("f"), "b")) == keys.of_all((assistant("a"), assistant(asks("f"), Text("b"))))
    assert keys.of(assistant("a", asks("f"))) != keys.of(assistant(asks("f"), "a"))


@pytest.mark.parametrize("broken", ['{"a":', "plain words", "NaN"])
def test_arguments_that_are_no_json_are_compared_as_they_are(broken: str) -> None:
    assert canonical(f" {broken} ") == broken


def test_no_arguments_are_an_empty_object() -> None:
    assert canonical("") == canonical(" {} ") == "{}"


def test_numbers_too_big_for_the_encoder_are_no_problem() -> None:
    keys = ContentKeys()
    huge = Media("image", {"n": 10**30})
    assert keys.of(Message("user", (huge,))) == keys.of(Message("user", (Media("image", {"n": 10**30}),)))


def test_tool_calls_that_travel_as_plain_text_are_the_calls_that_were_made() -> None:
    as_text = "Calling tools:\n[{'id': 'c1', 'type': 'function', 'function': {'name': 'look', 'arguments': {'a': 1}}}]"
    requested = assistant("I look.", ToolCall("c1", "look", '{"a":1}'))
    assert list(atoms(assistant(f"I look.\n{as_text}"))) == list(atoms(requested))
    code = "Calling tools:\n[{'function': {'name': 'run', 'arguments': 'print(1)'}}]"
    assert list(atoms(assistant(code))) == [("call", "run", "print(1)")]


@pytest.mark.parametrize(
    "text", ["Calling tools:\nnone today", "Calling tools:\n[{'function': 3}]", "Calling tools:\n["]
)
def test_what_only_looks_like_tool_calls_is_text(text: str) -> None:
    assert list(atoms(assistant(text))) == [("text", "assistant", text)]
