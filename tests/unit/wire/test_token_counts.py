"""Which of a stream's reports of its usage counts, in each format that streams it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.wire import DONE, answer, chunk, counts, frame, named

from wiretape.wire.token_counts import latest_usage

MESSAGES = "https://api.anthropic.com/v1/messages"
CHAT = "https://api.openai.com/v1/chat/completions"
RESPONSES = "https://api.openai.com/v1/responses"
GEMINI = "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"
COHERE = "https://api.cohere.com/v2/chat"


def messages(start: dict[str, Any], *deltas: dict[str, Any] | None, stop: bool = True) -> list[bytes]:
    """The frames of an Anthropic stream whose start and whose `message_delta` events have these usages."""
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": start}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": head},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hello"}},
    ]
    for usage in deltas:
        events.append({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage})
    return named([*events, {"type": "message_stop"}] if stop else events)


CACHED = {"input_tokens": 15, "cache_read_input_tokens": 2000, "cache_creation_input_tokens": 300, "output_tokens": 1}
ANTHROPIC: dict[str, tuple[list[bytes], tuple[int | None, ...]]] = {
    "usual": (messages(CACHED, {"output_tokens": 16}), (2315, 2000, 300, 16, None)),
    "input_0_at_the_end": (
        messages({"input_tokens": 15, "output_tokens": 1}, {"input_tokens": 0, "output_tokens": 16}),
        (15, None, None, 16, None),
    ),
    "all_input_0_at_the_end": (
        messages(CACHED, {**dict.fromkeys(CACHED, 0), "output_tokens": 16}),
        (2315, 2000, 300, 16, None),
    ),
    "one_count_falls_to_0": (
        messages(CACHED, {**CACHED, "cache_creation_input_tokens": 0, "output_tokens": 16}),
        (2015, 2000, 0, 16, None),
    ),
    "input_falls_to_0_because_all_is_cached": (
        messages(CACHED, {**CACHED, "input_tokens": 0, "output_tokens": 16}),
        (2300, 2000, 300, 16, None),
    ),
    "a_last_report_of_zeros": (
        messages(CACHED, {"output_tokens": 16}, dict.fromkeys(CACHED, 0)),
        (2315, 2000, 300, 16, None),
    ),
    "the_output_is_0": (messages(CACHED, {"output_tokens": 0}), (2315, 2000, 300, 0, None)),
    "zeros_at_the_start": (
        messages({"input_tokens": 0, "output_tokens": 0}, {"input_tokens": 11, "output_tokens": 5}),
        (11, None, None, 5, None),
    ),
    "cached_part_named_late_without_input": (
        messages(
            {"input_tokens": 3602, "output_tokens": 0},
            {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 3600, "output_tokens": 878},
        ),
        (3602, 3600, 0, 878, None),
    ),
    "cached_part_named_late_with_input_0": (
        messages(
            {"input_tokens": 3602, "output_tokens": 0},
            {"input_tokens": 0, "cache_read_input_tokens": 3600, "output_tokens": 878},
        ),
        (3602, 3600, None, 878, None),
    ),
    "cached_part_named_late_beside_the_same_input": (
        messages(
            {"input_tokens": 8834, "cache_read_input_tokens": 0, "output_tokens": 0},
            {"input_tokens": 8834, "cache_read_input_tokens": 8831, "output_tokens": 426},
        ),
        (8834, 8831, None, 426, None),
    ),
    "written_part_named_late": (
        messages(
            {"input_tokens": 3602, "output_tokens": 0},
            {"cache_creation_input_tokens": 3000, "output_tokens": 8},
        ),
        (3602, None, 3000, 8, None),
    ),
    "cached_part_named_late_and_repeated": (
        messages(
            {"input_tokens": 3602, "output_tokens": 0},
            {"cache_read_input_tokens": 3600, "output_tokens": 8},
            {"cache_read_input_tokens": 3600, "output_tokens": 9},
        ),
        (3602, 3600, None, 9, None),
    ),
    "cached_part_taken_out_of_the_input": (
        messages(
            {"input_tokens": 8834, "output_tokens": 0},
            {
                "input_tokens": 18,
                "cache_read_input_tokens": 8831,
                "output_tokens": 426,
            },
        ),
        (8849, 8831, None, 426, None),
    ),
    "cached_part_larger_than_the_input": (
        messages({"input_tokens": 15, "output_tokens": 0}, {"cache_read_input_tokens": 2000, "output_tokens": 4}),
        (2015, 2000, None, 4, None),
    ),
    "cut": (messages(CACHED, stop=False), (2315, 2000, 300, None, None)),
    "ended_without_a_final_usage": (messages(CACHED, None), (2315, 2000, 300, None, None)),
}


@pytest.mark.parametrize("name", ANTHROPIC)
def test_anthropic(name: str) -> None:
    frames, expected = ANTHROPIC[name]
    assert counts(answer(MESSAGES, frames)) == expected


def used(prompt: int, completion: int, **more: Any) -> dict[str, Any]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion, **more}


def test_zeros_after_the_usage_of_a_chat_change_nothing() -> None:
    text, end = chunk({"content": "hello"}), chunk({}, "stop", usage=used(65, 251))
    assert counts(answer(CHAT, [text, end, chunk(None, usage=used(0, 0)), DONE])) == (65, None, None, 251, None)
    known = used(65, 251, prompt_tokens_details={"cached_tokens": 64})
    zeros = used(0, 0, prompt_tokens_details={"cached_tokens": 0})
    frames = [text, chunk({}, "stop", usage=known), chunk(None, usage=zeros), DONE]
    assert counts(answer(CHAT, frames)) == (65, 64, None, 251, None)


def test_a_last_chunk_without_the_input_of_a_chat_keeps_it() -> None:
    frames = [chunk({"content": "a"}, usage=used(65, 1)), chunk({}, "stop", usage=used(0, 251)), DONE]
    assert answer(CHAT, frames).usage is not None
    assert counts(answer(CHAT, frames)) == (65, None, None, 251, None)


def test_the_output_of_a_cut_chat_is_not_final() -> None:
    frames = [chunk({"content": "a"}, usage=used(65, 1)), chunk({"content": "b"}, usage=used(65, 2))]
    assert counts(answer(CHAT, frames)) == (65, None, None, None, None)


def test_responses() -> None:
    usage = {"input_tokens": 65, "output_tokens": 251, "total_tokens": 316}
    done = {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": [], "usage": usage}}
    zeros = dict.fromkeys(usage, 0)
    for last in (zeros, None):
        again = {"type": "response.completed", "response": {"id": "r", "status": "completed", "usage": last}}
        assert counts(answer(RESPONSES, named([done, again]))) == (65, None, None, 251, None)


def gemini(usage: dict[str, int], finish: str | None = None) -> bytes:
    candidate = {"content": {"role": "model", "parts": [{"text": "a"}]}, "finishReason": finish}
    return frame({"candidates": [candidate], "usageMetadata": usage})


def test_gemini() -> None:
    usage = {"promptTokenCount": 65, "candidatesTokenCount": 251, "totalTokenCount": 316}
    zeros = dict.fromkeys(usage, 0)
    assert counts(answer(GEMINI, [gemini(usage), gemini(zeros, "STOP")])) == (65, None, None, 251, None)
    no_input = {"promptTokenCount": 0, "candidatesTokenCount": 260, "totalTokenCount": 260}
    assert counts(answer(GEMINI, [gemini(usage), gemini(no_input, "STOP")])) == (65, None, None, 260, None)
    assert counts(answer(GEMINI, [gemini(usage), gemini(usage)])) == (65, None, None, None, None)


def test_cohere() -> None:
    def end(tokens: int) -> dict[str, Any]:
        usage = {"tokens": {"input_tokens": tokens, "output_tokens": tokens}}
        return {"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": usage}}

    start = {"type": "message-start", "id": "1", "delta": {"message": {"role": "assistant"}}}
    assert counts(answer(COHERE, named([start, end(7), end(0)]))) == (7, None, None, 7, None)


def test_a_report_of_zeros_replaces_only_zeros() -> None:
    assert latest_usage(None, {"input_tokens": 0}) == {"input_tokens": 0}
    assert latest_usage({"input_tokens": 0}, {"input_tokens": 0, "output_tokens": 0}) == {
        "input_tokens": 0,
        "output_tokens": 0,
    }
    before = {"inputTokens": 5, "outputTokens": 6, "totalTokens": 11}
    assert latest_usage(before, {"inputTokens": 0, "outputTokens": 7, "totalTokens": 7}) == {
        "inputTokens": 5,
        "outputTokens": 7,
    }
    assert latest_usage(before, dict.fromkeys(before, 0)) == before
