"""Edits of an answer's values in its wire format."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.sockets import events, function_call, message
from tests.support.wire import CHAT, DONE, GEMINI, MESSAGES, RESPONSES, chunk, exchange, frame, named, stream

from wiretape.errors import UsageError
from wiretape.model.http import Exchange, JsonBody, StreamBody, body_bytes
from wiretape.rerun.fork.answer_edit import answer_values, edit_answer
from wiretape.wire.base import Memo
from wiretape.wire.registry import default_registry

CALLS = [{"index": 0, "id": "c0", "function": {"name": "add", "arguments": ""}}]


def tool_delta(index: int, arguments: str, **more: Any) -> bytes:
    return chunk({"tool_calls": [{"index": index, **more, "function": {"arguments": arguments}}]})


def chat_stream() -> StreamBody:
    named_add = {"id": "c0", "type": "function"}
    frames = [
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "I "}),
        chunk({"content": "add."}),
        chunk({"tool_calls": [{"index": 0, **named_add, "function": {"name": "add", "arguments": ""}}]}),
        tool_delta(0, '{"a":'),
        tool_delta(0, " 2}"),
        chunk(
            {"tool_calls": [{"index": 1, "id": "c1", "type": "function", "function": {"name": "add", "arguments": ""}}]}
        ),
        tool_delta(1, '{"a": 2}'),
        chunk({}, "tool_calls"),
        DONE,
    ]
    return stream(frames)


def anthropic_stream() -> StreamBody:
    start = {"id": "m", "model": "m", "role": "assistant", "content": [], "usage": {"input_tokens": 3}}
    use = {"type": "tool_use", "id": "t", "name": "add", "input": {}}
    return stream(
        named(
            [
                {"type": "message_start", "message": start},
                {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "I "}},
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "add."}},
                {"type": "content_block_stop", "index": 0},
                {"type": "content_block_start", "index": 1, "content_block": use},
                {
                    "type": "content_block_delta",
                    "index": 1,
                    "delta": {"type": "input_json_delta", "partial_json": '{"a"'},
                },
                {
                    "type": "content_block_delta",
                    "index": 1,
                    "delta": {"type": "input_json_delta", "partial_json": ": 2}"},
                },
                {"type": "content_block_stop", "index": 1},
                {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}},
                {"type": "message_stop"},
            ]
        )
    )


def responses_stream() -> StreamBody:
    told = events("r", message("I add."), function_call("add", "c", '{"a": 2}'))
    return stream(named([event for _, event in told]))


def gemini_stream() -> StreamBody:
    parts = [{"text": "I add."}, {"functionCall": {"name": "add", "args": {"a": 2}}}]
    ends = {"candidates": [{"content": {"role": "model", "parts": parts[1:]}, "finishReason": "STOP"}]}
    return stream([frame({"candidates": [{"content": {"role": "model", "parts": parts[:1]}}]}), frame(ends)])


def chat_whole() -> JsonBody:
    asks = [{"id": f"c{n}", "type": "function", "function": {"name": "add", "arguments": '{"a":2}'}} for n in range(2)]
    said = {"role": "assistant", "content": "I add.", "tool_calls": asks}
    return JsonBody({"model": "m", "choices": [{"index": 0, "message": said, "finish_reason": "tool_calls"}]})


def anthropic_whole() -> JsonBody:
    content = [{"type": "text", "text": "I add."}, {"type": "tool_use", "id": "t", "name": "add", "input": {"a": 2}}]
    return JsonBody({"model": "m", "role": "assistant", "content": content, "stop_reason": "tool_use"})


ANSWERS = {
    "chat, streamed": (CHAT, chat_stream),
    "chat": (CHAT, chat_whole),
    "messages, streamed": (MESSAGES, anthropic_stream),
    "messages": (MESSAGES, anthropic_whole),
    "responses, streamed": (RESPONSES, responses_stream),
    "gemini, streamed": (GEMINI, gemini_stream),
}


def recorded(name: str) -> Exchange:
    url, make = ANSWERS[name]
    return exchange(url, make())


def read(one: Exchange) -> list[dict[str, Any]]:
    (call,) = default_registry().calls_of(one, Memo())
    assert call.response is not None
    return answer_values(call.response.messages)


@pytest.mark.parametrize("name", ANSWERS)
def test_a_text_and_arguments_are_replaced(name: str) -> None:
    before = recorded(name)
    wanted = read(before)
    assert wanted[:2] == [{"text": "I add."}, {"tool": "add", "arguments": {"a": 2}}]
    wanted[0]["text"] = "我来把两个数相加。 🙂"
    wanted[1]["arguments"] = {"a": 3, "b": ["x"]}
    after = edit_answer(before, wanted)
    assert read(after) == wanted
    assert read(before) != wanted


@pytest.mark.parametrize("name", ANSWERS)
def test_an_unchanged_answer_is_the_same_object(name: str) -> None:
    before = recorded(name)
    assert edit_answer(before, read(before)) is before


def test_only_the_second_of_two_equal_tool_calls_is_changed() -> None:
    for name in ("chat", "chat, streamed"):
        before = recorded(name)
        wanted = read(before)
        assert wanted[1] == wanted[2]
        wanted[2]["arguments"] = {"a": 5}
        assert read(edit_answer(before, wanted)) == wanted


def test_frames_without_an_edit_keep_their_bytes() -> None:
    before = recorded("chat, streamed")
    wanted = read(before)
    wanted[0]["text"] = "No."
    after = edit_answer(before, wanted)
    assert before.response is not None
    assert after.response is not None
    old, new = before.response.body, after.response.body
    assert isinstance(old, StreamBody)
    assert isinstance(new, StreamBody)
    assert len(old.frames) == len(new.frames)
    assert list(old.ms) == list(new.ms)
    assert [n for n, (a, b) in enumerate(zip(old.frames, new.frames, strict=True)) if a != b] == [1, 2]


@given(st.text(max_size=40), st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=3))
def test_any_text_and_any_arguments_can_be_written(text: str, arguments: dict[str, Any]) -> None:
    for name in ("chat, streamed", "messages, streamed", "responses, streamed"):
        before = recorded(name)
        wanted = read(before)
        wanted[0]["text"], wanted[1]["arguments"] = text, arguments
        try:
            after = edit_answer(before, wanted)
        except UsageError:  # refused completely: an empty text has no block, and some numbers are not valid here
            assert not text or any(isinstance(value, int) and abs(value) >= 2**63 for value in arguments.values())
            continue
        assert read(after) == wanted


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda wanted: wanted.pop(), "has 3 values, the edit has 2"),
        (lambda wanted: wanted[0].update(text=5), "text must be a string"),
        (lambda wanted: wanted[0].update(more="x"), "must have the members text"),
        (lambda wanted: wanted.__setitem__(0, "x"), "must have the members text"),
    ],
)
def test_another_shape_is_refused_with_the_next_step(change: Any, says: str) -> None:
    before = recorded("chat, streamed")
    wanted = read(before)
    change(wanted)
    with pytest.raises(UsageError, match=says):
        edit_answer(before, wanted)


def test_edits_that_the_wire_format_cannot_represent_are_refused() -> None:
    body = JsonBody({"choices": [{"message": {"role": "assistant", "content": "<think>Hm.</think>Yes."}}]})
    before = exchange(CHAT, body)
    wanted = [{"reasoning": "Hm."}, {"text": "Yes."}]
    if read(before) != wanted:  # a dialect without reasoning in the text
        pytest.skip("no reasoning is read out of this text")
    wanted[1]["text"] = "No."
    with pytest.raises(UsageError, match="edit the body instead"):
        edit_answer(before, wanted)
    assert before.response is not None
    assert b"Yes." in body_bytes(before.response.body)
