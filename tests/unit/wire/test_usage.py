"""Token counts and finish reasons of OpenAI and Anthropic, normalized."""

from __future__ import annotations

from typing import Any

import pytest

from wiretape.model.call import Usage
from wiretape.wire.anthropic.usage import anthropic_finish, anthropic_usage
from wiretape.wire.bedrock.usage import converse_usage
from wiretape.wire.gemini.usage import generate_usage, interaction_usage
from wiretape.wire.lenient import merge
from wiretape.wire.ollama.messages import ollama_usage
from wiretape.wire.openai.usage import chat_finish, openai_usage, responses_finish


def chat(prompt: int, completion: int, total: int | None = None, **more: Any) -> dict[str, Any]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total, **more}


def cached(tokens: int, **more: Any) -> dict[str, Any]:
    return {"prompt_tokens_details": {"cached_tokens": tokens, **more}}


def thought(tokens: int) -> dict[str, Any]:
    return {"completion_tokens_details": {"reasoning_tokens": tokens}}


CASES: dict[str, tuple[dict[str, Any], tuple[int | None, ...]]] = {
    "openai": (chat(100, 50, 150, **cached(64, cache_write_tokens=10), **thought(20)), (100, 64, 10, 50, 20)),
    "responses": (
        {"input_tokens": 462, "input_tokens_details": {"cached_tokens": 256}, "output_tokens": 31, "total_tokens": 493},
        (462, 256, None, 31, None),
    ),
    "deepseek": (
        chat(316, 86, 402, prompt_cache_hit_tokens=256, prompt_cache_miss_tokens=60, **thought(37)),
        (316, 256, None, 86, 37),
    ),
    "xai_reasoning_stands_outside": (chat(32, 9, 241, **cached(6), **thought(200)), (32, 6, None, 209, 200)),
    "xai_responses_reasoning_stands_inside": (
        {
            "input_tokens": 32,
            "output_tokens": 300,
            "total_tokens": 332,
            "output_tokens_details": {"reasoning_tokens": 250},
        },
        (32, None, None, 300, 250),
    ),
    "cached_larger_than_the_input_without_a_total": (chat(10, 5, **cached(161)), (171, 161, None, 5, None)),
    "reasoning_larger_than_the_output_without_a_total": (chat(10, 18, **thought(137)), (10, None, None, 155, 137)),
    "cached_is_beside_a_larger_input": (
        chat(900, 20, 1520, cache_read_input_tokens=600, cache_creation_input_tokens=0),
        (1500, 600, 0, 20, None),
    ),
    "written_is_beside_a_larger_input": (
        chat(900, 20, 1520, cache_read_input_tokens=0, cache_creation_input_tokens=600),
        (1500, 0, 600, 20, None),
    ),
    "cached_is_beside_a_smaller_input": (
        chat(368, 19, 10923, cache_read_input_tokens=10536, cache_creation_input_tokens=0),
        (10904, 10536, 0, 19, None),
    ),
    "cached_inside_and_written_beside": (
        chat(900, 20, 1020, **cached(600, cache_write_tokens=100)),
        (1000, 600, 100, 20, None),
    ),
    "cache_and_reasoning_beside": (
        chat(100, 20, 230, **cached(80), **thought(30)),
        (180, 80, None, 50, 30),
    ),
    "voxtral_counts_audio_beside_text": (chat(9, 248, 632, **cached(0, audio_tokens=375)), (384, 0, None, 248, None)),
    "openai_counts_audio_inside": (chat(384, 248, 632, **cached(0, audio_tokens=375)), (384, 0, None, 248, None)),
    "spoken_answer_beside_text": (
        chat(9, 20, 79, completion_tokens_details={"audio_tokens": 50}),
        (9, None, None, 70, None),
    ),
    "grok_at_azure": (chat(249, 40, 289, **cached(158, text_tokens=249)), (249, 158, None, 40, None)),
    "gemini_compatible_hides_reasoning_in_the_total": (chat(35, 12, 109), (35, None, None, 74, 62)),
    "moonshot": (chat(30, 12, 42, cached_tokens=20), (30, 20, None, 12, None)),
    "mistral": (chat(30, 12, 42, num_cached_tokens=20), (30, 20, None, 12, None)),
    "mistral_other_spelling": (chat(30, 12, 42, prompt_token_details={"cached_tokens": 20}), (30, 20, None, 12, None)),
    "qwen_creation_stands_inside": (
        chat(100, 9, 109, **cached(50, cache_creation_input_tokens=30, cache_type="ephemeral")),
        (100, 50, 30, 9, None),
    ),
    "databricks": (
        chat(100, 9, 109, cache_read_input_tokens=40, cache_creation_input_tokens=0),
        (100, 40, 0, 9, None),
    ),
    "anthropic_style_beside": (
        chat(10, 9, 424, cache_read_input_tokens=400, cache_creation_input_tokens=5),
        (415, 400, 5, 9, None),
    ),
    "perplexity": (chat(10, 90, 100, reasoning_tokens=70), (10, None, None, 90, 70)),
    "nothing_cached_is_known": (chat(10, 2, 12, **cached(0)), (10, 0, None, 2, None)),
    "null_details": (
        chat(10, 2, 12, prompt_tokens_details=None, completion_tokens_details=None),
        (10, None, None, 2, None),
    ),
    "only_the_prompt": ({"prompt_tokens": 10, "completion_tokens": None}, (10, None, None, None, None)),
    "strings_are_no_counts": ({"prompt_tokens": "10", "completion_tokens": True}, (None,) * 5),
}


@pytest.mark.parametrize("name", CASES)
def test_openai_like_usage(name: str) -> None:
    raw, expected = CASES[name]
    found = openai_usage(raw)
    if expected == (None,) * 5:
        assert found is None
    else:
        assert found == Usage(*expected)
        assert found is not None
        assert found.raw is raw


CONTRADICTORY: dict[str, tuple[Usage | None, tuple[int | None, ...]]] = {
    "chat_cached_exceeds_the_input_of_the_total": (
        openai_usage(chat(249, 40, 289, **cached(416, text_tokens=249))),
        (249, 416, None, 40, None),
    ),
    "chat_reasoning_exceeds_the_output_of_the_total": (
        openai_usage(chat(10, 18, 28, **thought(137))),
        (10, None, None, 18, 137),
    ),
    "chat_total_of_nothing": (openai_usage(chat(10, 18, 20, **thought(5))), (10, None, None, 18, 5)),
    "chat_total_fits_two_readings": (
        openai_usage(chat(90, 60, 200, **cached(50), **thought(50))),
        (90, 50, None, 60, 50),
    ),
    "gemini": (
        generate_usage({"promptTokenCount": 50, "candidatesTokenCount": 20, "totalTokenCount": 99}),
        (50, None, None, 20, None),
    ),
    "converse": (
        converse_usage({"inputTokens": 10, "outputTokens": 5, "totalTokens": 15, "cacheReadInputTokens": 400}),
        (410, 400, None, 5, None),
    ),
}


@pytest.mark.parametrize("name", CONTRADICTORY)
def test_counts_that_fit_no_total_stay_as_the_format_defines_them(name: str) -> None:
    usage, expected = CONTRADICTORY[name]
    assert usage == Usage(*expected, consistent=False)


def test_the_total_decides_for_gemini() -> None:
    def counts(**more: int) -> Usage | None:
        return generate_usage({"promptTokenCount": 500, **more})

    usual = counts(candidatesTokenCount=120, thoughtsTokenCount=100, totalTokenCount=720)
    assert usual == Usage(500, None, None, 220, 100)
    inside = counts(candidatesTokenCount=120, thoughtsTokenCount=100, totalTokenCount=620)
    assert inside == Usage(500, None, None, 120, 100)
    left_out = counts(thoughtsTokenCount=100, totalTokenCount=700)
    assert left_out == Usage(500, None, None, 200, 100)
    only_thoughts = counts(thoughtsTokenCount=100, totalTokenCount=600)
    assert only_thoughts == Usage(500, None, None, 100, 100)
    tools = counts(candidatesTokenCount=20, toolUsePromptTokenCount=30, totalTokenCount=550)
    assert tools == Usage(530, None, None, 20)
    tools_inside = counts(candidatesTokenCount=20, toolUsePromptTokenCount=30, totalTokenCount=520)
    assert tools_inside == Usage(500, None, None, 20)
    cached_beside = counts(candidatesTokenCount=20, cachedContentTokenCount=300, totalTokenCount=820)
    assert cached_beside == Usage(800, 300, None, 20)


def test_the_total_decides_for_converse_and_interactions() -> None:
    counts = {"inputTokens": 500, "outputTokens": 20, "cacheReadInputTokens": 300, "cacheWriteInputTokens": 0}
    assert converse_usage({**counts, "totalTokens": 820}) == Usage(800, 300, 0, 20)
    assert converse_usage({**counts, "totalTokens": 520}) == Usage(500, 300, 0, 20)
    thought_inside = {"total_input_tokens": 9, "total_output_tokens": 20, "total_thought_tokens": 5, "total_tokens": 29}
    assert interaction_usage(thought_inside) == Usage(9, None, None, 20, 5)
    assert interaction_usage({**thought_inside, "total_tokens": 34}) == Usage(9, None, None, 25, 5)


def test_the_total_decides_for_servers_compatible_with_anthropic() -> None:
    counts = {"input_tokens": 500, "output_tokens": 20, "cache_read_input_tokens": 300}
    assert anthropic_usage({**counts, "total_tokens": 820}) == Usage(800, 300, None, 20)
    assert anthropic_usage({**counts, "total_tokens": 520}) == Usage(500, 300, None, 20)
    assert anthropic_usage({"input_tokens": 100, "cached_tokens": 80, "output_tokens": 9}) == Usage(100, 80, None, 9)


def test_ollama_reports_its_cached_count() -> None:
    body = {"message": {"role": "assistant", "content": "yo"}, "done": True, "done_reason": "stop"}
    counts = {"prompt_eval_count": 21, "prompt_eval_cached_count": 16, "eval_count": 8}
    assert ollama_usage({**body, **counts}) == Usage(21, 16, None, 8)


def test_counts_that_are_not_reported_are_none() -> None:
    for nothing in (None, {}, [], "usage", 3, {"cost": 1}):
        assert openai_usage(nothing) is None
        assert anthropic_usage(nothing) is None


def test_llama_cpp_reports_cached_tokens_in_its_timings() -> None:
    assert openai_usage(chat(100, 5, 105), {"cache_n": 80, "prompt_n": 20, "predicted_n": 5}) == Usage(100, 80, None, 5)


def test_anthropics_cached_tokens_are_added_to_the_input() -> None:
    raw = {
        "input_tokens": 3,
        "cache_read_input_tokens": 1000,
        "cache_creation_input_tokens": 200,
        "output_tokens": 50,
        "output_tokens_details": {"thinking_tokens": 30},
    }
    assert anthropic_usage(raw) == Usage(1203, 1000, 200, 50, 30)
    assert anthropic_usage({"input_tokens": 3, "output_tokens": 1}) == Usage(3, None, None, 1)


def test_merging_overwrites_by_member_and_skips_nulls() -> None:
    before = {"a": 1, "b": 2, "details": {"x": 1, "y": 2}}
    assert merge(before, {"a": 5, "b": None, "details": {"x": None, "y": 9}}) == {
        "a": 5,
        "b": 2,
        "details": {"x": 1, "y": 9},
    }
    assert before["a"] == 1
    assert merge(None, {"a": 1}) == {"a": 1}
    assert merge(before, None) is before


@pytest.mark.parametrize("count", [10**400, 2**64, -(2**70), 1e308, float("nan"), float("inf"), True, "7", None])
def test_values_that_are_not_counts_are_absent(count: Any) -> None:
    assert openai_usage({"prompt_tokens": count, "completion_tokens": 2}) == Usage(None, None, None, 2, None)
    assert anthropic_usage({"input_tokens": count, "output_tokens": 2}) == Usage(None, None, None, 2, None)


@pytest.mark.parametrize(
    ("raw", "has_calls", "expected"),
    [
        ("stop", False, "stop"),
        ("eos", False, "stop"),
        ("normal", False, "stop"),
        ("STOP", False, "stop"),
        ("stop", True, "tool_calls"),
        ("", True, "tool_calls"),
        (None, True, "tool_calls"),
        ("", False, None),
        ("tool_calls", True, "tool_calls"),
        ("function_call", True, "tool_calls"),
        ("length", True, "length"),
        ("content_filter", False, "content_filter"),
        ("sensitive", False, "content_filter"),
        ("error", False, "error"),
        ("insufficient_system_resource", False, "error"),
        ("a_new_one", False, None),
    ],
)
def test_finish_reasons_of_chat(raw: str | None, has_calls: bool, expected: str | None) -> None:
    assert chat_finish(raw, has_calls) == expected


def test_finish_reasons_of_messages() -> None:
    assert anthropic_finish("end_turn", False) == "stop"
    assert anthropic_finish("end_turn", True) == "tool_calls"
    assert anthropic_finish("compaction", False) == "pause"
    assert anthropic_finish(None, False) is None


def test_finish_reasons_of_responses() -> None:
    assert responses_finish({"status": "completed"}, True) == ("tool_calls", "completed")
    assert responses_finish({"status": "completed"}, False) == ("stop", "completed")
    assert responses_finish({"status": "in_progress"}, False) == ("pause", "in_progress")
    steered = {"status": "incomplete", "incomplete_details": {"reason": "steered"}}
    assert responses_finish(steered, False) == ("pause", "steered")
    assert responses_finish({"status": "of_the_future"}, False) == (None, "of_the_future")
    assert responses_finish({}, False) == (None, None)
