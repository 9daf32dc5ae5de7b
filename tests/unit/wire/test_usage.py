"""Token counts and finish reasons of OpenAI and Anthropic, normalized."""

from __future__ import annotations

from typing import Any

import pytest

from wiretape.model.call import Usage
from wiretape.wire.anthropic.usage import anthropic_finish, anthropic_usage
from wiretape.wire.lenient import merge
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
    "grok_at_azure_counts_the_cache_beside": (chat(10, 5, 15, **cached(161)), (171, 161, None, 5, None)),
    "reasoning_larger_than_the_output": (chat(10, 18, 28, **thought(137)), (10, None, None, 155, 137)),
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
        chat(10, 9, 19, cache_read_input_tokens=400, cache_creation_input_tokens=5),
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
