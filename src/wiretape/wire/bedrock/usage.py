"""Bedrock's token counts and finish reasons in bodies, metrics and headers, normalized.

Cached tokens are counted separately from the input, unless the total shows otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping

from wiretape.model.call import Finish, Usage
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.decoding import with_tool_calls
from wiretape.wire.lenient import first, number, obj
from wiretape.wire.token_counts import judged_usage

METRICS = "amazon-bedrock-invocationMetrics"
_HEADER = "x-amzn-bedrock-"
_FINISH: dict[str, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "stop": "stop",
    "finish": "stop",
    "finished": "stop",
    "endoftext": "stop",
    "complete": "stop",
    "tool_use": "tool_calls",
    "tool_call": "tool_calls",
    "tool_calls": "tool_calls",
    "max_tokens": "length",
    "length": "length",
    "error_limit": "length",
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
    "content_filter": "content_filter",
    "error_toxic": "content_filter",
    "malformed_tool_use": "error",
    "malformed_model_output": "error",
    "rag_query_when_rag_disabled": "error",
    "error": "error",
}


def converse_finish(raw: str | None, ends_with_call: bool) -> Finish | None:
    """Return the finish of a reason. A stop or no reason after a tool call is `tool_calls`; unknown ones stay None."""
    finish = _FINISH.get(raw.lower()) if raw else None
    return with_tool_calls(finish, ends_with_call)


def converse_usage(raw: Json) -> Usage | None:
    """Read the `usage` of Converse, and of Nova on Invoke."""
    counts = obj(raw)
    cached = first(number(counts.get("cacheReadInputTokens")), number(counts.get("cacheReadInputTokenCount")))
    written = first(number(counts.get("cacheWriteInputTokens")), number(counts.get("cacheWriteInputTokenCount")))
    total = number(counts.get("totalTokens"))
    return _usage(number(counts.get("inputTokens")), cached, written, number(counts.get("outputTokens")), counts, total)


def metrics_usage(raw: Json) -> Usage | None:
    """Read the invocation metrics in the last event of an Invoke stream."""
    counts = obj(raw)
    return _usage(
        number(counts.get("inputTokenCount")),
        number(counts.get("cacheReadInputTokenCount")),
        number(counts.get("cacheWriteInputTokenCount")),
        number(counts.get("outputTokenCount")),
        counts,
    )


def header_usage(headers: Mapping[str, str]) -> Usage | None:
    """Read the counts in the headers of an unstreamed Invoke answer."""
    counts = {k.removeprefix(_HEADER): int(v) for k, v in headers.items() if k.startswith(_HEADER) and _is_count(v)}
    return _usage(
        counts.get("input-token-count"),
        counts.get("cache-read-input-token-count"),
        counts.get("cache-write-input-token-count"),
        counts.get("output-token-count"),
        {f"{_HEADER}{k}": v for k, v in counts.items() if k.endswith("token-count")},
    )


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 16


def _usage(
    uncached: int | None,
    cached: int | None,
    written: int | None,
    output: int | None,
    raw: JsonObject,
    total: int | None = None,
) -> Usage | None:
    return judged_usage(raw, uncached, output, total, cached=cached, written=written, cache_beside=True)
