"""Gemini's token counts and finish reasons, normalized.

The total is the sum of prompt, candidates, thoughts, and the tokens that server tools add to the prompt.
"""

from __future__ import annotations

from wiretape.model.call import Finish, Usage
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.gemini.payload import get
from wiretape.wire.lenient import number
from wiretape.wire.token_counts import Part, judged_usage

_FINISH: dict[str, Finish] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "LANGUAGE": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
    "MODEL_ARMOR": "content_filter",
    "CONTINUATION": "pause",
    "MALFORMED_FUNCTION_CALL": "error",
    "UNEXPECTED_TOOL_CALL": "error",
    "TOO_MANY_TOOL_CALLS": "error",
    "MISSING_THOUGHT_SIGNATURE": "error",
    "MALFORMED_RESPONSE": "error",
    "NO_IMAGE": "error",
    "OTHER": "error",
    # As numbers. From 9 on the two hosts differ; 6 to 8 are filters on both.
    "1": "stop",
    "2": "length",
    "3": "content_filter",
    "4": "content_filter",
    "5": "error",
    "6": "content_filter",
    "7": "content_filter",
    "8": "content_filter",
}
_UNSPECIFIED = ("FINISH_REASON_UNSPECIFIED", "0")
_STATUS: dict[str, Finish] = {
    "completed": "stop",
    "requires_action": "tool_calls",
    "incomplete": "length",
    "budget_exceeded": "length",
    "failed": "error",
    "cancelled": "error",
    "in_progress": "pause",
    "queued": "pause",
    "idle": "pause",
    "requires_continuation": "pause",
}


def generate_usage(raw: Json) -> Usage | None:
    """Read `usageMetadata`."""
    if not isinstance(raw, dict):
        return None
    return _usage(
        raw,
        prompt=number(get(raw, "promptTokenCount")),
        tool_use=number(get(raw, "toolUsePromptTokenCount")),
        cached=number(get(raw, "cachedContentTokenCount")),
        answer=number(get(raw, "candidatesTokenCount")),
        thoughts=number(get(raw, "thoughtsTokenCount")),
        total=number(get(raw, "totalTokenCount")),
    )


def interaction_usage(raw: Json) -> Usage | None:
    """Read the `usage` of an interaction."""
    if not isinstance(raw, dict):
        return None
    return _usage(
        raw,
        prompt=number(raw.get("total_input_tokens")),
        tool_use=number(raw.get("total_tool_use_tokens")),
        cached=number(raw.get("total_cached_tokens")),
        answer=number(raw.get("total_output_tokens")),
        thoughts=number(raw.get("total_thought_tokens")),
        total=number(raw.get("total_tokens")),
    )


def _usage(
    raw: JsonObject,
    *,
    prompt: int | None,
    tool_use: int | None,
    cached: int | None,
    answer: int | None,
    thoughts: int | None,
    total: int | None,
) -> Usage | None:
    if answer is None and prompt is not None and total is not None:  # zero counts are omitted on this wire
        left = total - prompt - (tool_use or 0) - (thoughts or 0)
        answer = left if left >= 0 else None
    if answer is None and thoughts is not None:
        answer = 0
    if prompt is None and tool_use is not None:
        prompt = 0
    return judged_usage(
        raw,
        prompt,
        answer,
        total,
        cached=cached,
        reasoning=thoughts,
        reasoning_beside=True,
        more=(Part("input", tool_use, beside=True),) if tool_use else (),
    )


def generate_finish(raw: str | None, has_calls: bool) -> Finish | None:
    """Return the finish of a reason. Gemini reports STOP for tool calls."""
    if raw is None or raw in _UNSPECIFIED:
        return "tool_calls" if has_calls else None
    finish = _FINISH.get(raw) or ("content_filter" if raw.startswith("IMAGE_") else None)
    return "tool_calls" if has_calls and finish == "stop" else finish


def interaction_finish(status: str | None, has_calls: bool) -> Finish | None:
    finish = _STATUS.get(status or "")
    return "tool_calls" if has_calls and finish == "stop" else finish
