"""Tokens and stop reasons as Bedrock tells them, in bodies, metrics and headers.

Cached tokens stand beside the input everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping

from wiretape.model.call import Finish, Usage
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.lenient import first, number, obj

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
    """An unknown reason stays unknown; a stop (or silence) after a tool call means tool calls."""
    finish = _FINISH.get(raw.lower()) if raw else None
    return "tool_calls" if ends_with_call and finish in (None, "stop") else finish


def converse_usage(raw: Json) -> Usage | None:
    """`usage` of Converse, and of Nova on Invoke."""
    told = obj(raw)
    cached = first(number(told.get("cacheReadInputTokens")), number(told.get("cacheReadInputTokenCount")))
    written = first(number(told.get("cacheWriteInputTokens")), number(told.get("cacheWriteInputTokenCount")))
    return _usage(number(told.get("inputTokens")), cached, written, number(told.get("outputTokens")), told)


def metrics_usage(raw: Json) -> Usage | None:
    """The invocation metrics that Invoke puts into a stream's last event."""
    told = obj(raw)
    return _usage(
        number(told.get("inputTokenCount")),
        number(told.get("cacheReadInputTokenCount")),
        number(told.get("cacheWriteInputTokenCount")),
        number(told.get("outputTokenCount")),
        told,
    )


def header_usage(headers: Mapping[str, str]) -> Usage | None:
    """The counts that Invoke puts into the headers of an unstreamed answer."""
    told = {k.removeprefix(_HEADER): int(v) for k, v in headers.items() if k.startswith(_HEADER) and _plain(v)}
    return _usage(
        told.get("input-token-count"),
        told.get("cache-read-input-token-count"),
        told.get("cache-write-input-token-count"),
        told.get("output-token-count"),
        {f"{_HEADER}{k}": v for k, v in told.items() if k.endswith("token-count")},
    )


def _plain(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 16


def _usage(
    plain: int | None, cached: int | None, written: int | None, output: int | None, raw: JsonObject
) -> Usage | None:
    whole = None if plain is None else plain + (cached or 0) + (written or 0)
    usage = Usage(whole, cached, written, output, None, raw)
    return usage if usage != Usage() else None
