"""Differences between two calls."""

from __future__ import annotations

from wiretape.debug.difference import compare_calls
from wiretape.model.call import CallRequest, Message, ModelCall, Text
from wiretape.model.jsonvalue import Json


def call(number: int, *messages: tuple[str, str], **settings: Json) -> ModelCall:
    blocks = tuple(Message(role, (Text(text),), block_paths=(".content",)) for role, text in messages)
    request = CallRequest("m", blocks, settings=settings, segments=((0, "messages"),))
    return ModelCall(number, number, "openai.chat", request, None, 0, None, None)


def test_a_changed_history_comes_before_added_messages_and_settings() -> None:
    first = call(1, ("system", "It is noon."), ("user", "Hello"), temperature=0.5)
    second = call(2, ("system", "It is one."), ("user", "Hello"), ("user", "Again"), temperature=0.7)
    changes = compare_calls(first, second, ("call 1", "call 2")).request
    assert [(change.path, change.how) for change in changes] == [
        ("messages[0].content", "changed"),
        ("messages[2]", "added"),
        ("temperature", "changed"),
    ]
