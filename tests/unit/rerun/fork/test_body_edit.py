"""Edits of an answer's whole body, for changes that a list of values cannot express."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.wire import CHAT, DONE, chunk, exchange, stream

from wiretape.errors import UsageError
from wiretape.model.http import BytesBody, Exchange, JsonBody, StreamBody
from wiretape.rerun.fork.answer_edit import answer_values, body_text, edit_answer, with_body_text
from wiretape.wire.base import Memo
from wiretape.wire.registry import default_registry

CALL = {"id": "c0", "type": "function", "function": {"name": "add", "arguments": '{"a":2}'}}


def whole(text: str, *calls: dict[str, Any]) -> Exchange:
    message = {"role": "assistant", "content": text, **({"tool_calls": list(calls)} if calls else {})}
    return exchange(CHAT, JsonBody({"choices": [{"message": message, "finish_reason": "stop"}]}))


def streamed() -> Exchange:
    return exchange(CHAT, stream([chunk({"role": "assistant", "content": "Yes."}), chunk({}, "stop"), DONE]))


def read(one: Exchange) -> list[dict[str, Any]]:
    (call,) = default_registry().calls_of(one, Memo())
    assert call.response is not None
    return answer_values(call.response.messages)


def test_a_tool_call_is_added_and_removed() -> None:
    without, with_call = whole("I add."), whole("I add.", CALL)
    assert read(with_body_text(without, body_text(with_call))) == [
        {"text": "I add."},
        {"tool": "add", "arguments": {"a": 2}},
    ]
    assert read(with_body_text(with_call, body_text(without))) == [{"text": "I add."}]


def test_a_stream_stays_a_stream_with_more_events() -> None:
    before = streamed()
    text = body_text(before)
    assert text.endswith("data: [DONE]\n\n")
    more = chunk({"tool_calls": [{"index": 0, **CALL}]}).decode()
    after = with_body_text(before, text.replace(more_at := chunk({}, "stop").decode(), more + more_at))
    assert read(after) == [{"text": "Yes."}, {"tool": "add", "arguments": {"a": 2}}]
    assert after.response is not None
    assert before.response is not None
    body, was = after.response.body, before.response.body
    assert isinstance(body, StreamBody)
    assert isinstance(was, StreamBody)
    assert len(body.frames) == len(was.frames) + 1
    assert list(body.ms) == [*was.ms, was.ms[-1]]


def test_an_unchanged_body_is_the_same_answer() -> None:
    for before in (whole("I add."), streamed()):
        assert with_body_text(before, body_text(before)) is before
        for ending in ("", "\n", "\n\n\n"):
            assert with_body_text(before, body_text(before).rstrip("\n") + ending) is before


def test_a_stripped_last_line_keeps_the_last_event() -> None:
    before = streamed()
    after = with_body_text(before, body_text(before).replace("Yes.", "No.").rstrip("\n"))
    assert read(after) == [{"text": "No."}]
    assert body_text(after).endswith("data: [DONE]\n\n")


@pytest.mark.parametrize(
    ("before", "text", "says"),
    [
        (whole("Yes."), "{", "is not JSON"),
        (whole("Yes."), "{}", "is not an answer in its wire format"),
        (whole("Yes."), "[" * 100_000, "is not JSON"),
        (streamed(), chunk({"role": "assistant", "content": "Y"}).decode(), "truncated"),
        (streamed(), "Yes.", "no known framing"),
    ],
)
def test_bodies_that_are_not_a_complete_answer_are_refused(before: Exchange, text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        with_body_text(before, text)


def test_binary_bodies_cannot_be_edited() -> None:
    for body in (StreamBody([b"\0\1"], [0], binary=True), BytesBody(b"\xff\xfe"), None):
        with pytest.raises(UsageError, match="has no text body"):
            body_text(exchange(CHAT, body))


def test_adding_a_value_is_refused_and_suggests_the_body() -> None:
    with pytest.raises(UsageError, match="edit body, or --edit body and --body FILE of a fork"):
        edit_answer(whole("Yes."), [{"text": "Yes."}, {"tool": "add", "arguments": {}}])
    assert json.loads(body_text(whole("Yes.")))["choices"][0]["message"]["content"] == "Yes."
