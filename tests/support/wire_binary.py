"""Builders of AWS event streams, and of whole streams of Bedrock, Ollama and Cohere."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any
from zlib import crc32

from tests.support.wire import DONE, frame, named
from wiretape.model.http import StreamBody

CONVERSE = "https://bedrock.example.com/model/us.anthropic.m%3A0/converse"
CONVERSE_STREAM = f"{CONVERSE}-stream"
INVOKE = "https://bedrock.example.com/model/us.anthropic.m%3A0/invoke"
INVOKE_STREAM = f"{INVOKE}-with-response-stream"
OLLAMA = "http://127.0.0.1:11434/api/chat"
GENERATE = "http://127.0.0.1:11434/api/generate"
COHERE = "https://api.example.com/v2/chat"
COMPLETIONS = "https://api.example.com/v1/completions"
AWS = [("content-type", "application/vnd.amazon.eventstream")]
METRICS = "amazon-bedrock-invocationMetrics"
ASKED: dict[str, dict[str, Any]] = {
    CONVERSE: {"messages": [{"role": "user", "content": [{"text": "go"}]}]},
    INVOKE: {"anthropic_version": "v", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}]},
    OLLAMA: {"model": "m", "messages": [{"role": "user", "content": "go"}]},
    GENERATE: {"model": "m", "prompt": "go"},
    COHERE: {"model": "m", "messages": [{"role": "user", "content": "go"}], "stream": True},
    COMPLETIONS: {"model": "m", "prompt": "go", "stream": True},
}
ASKED[CONVERSE_STREAM], ASKED[INVOKE_STREAM] = ASKED[CONVERSE], ASKED[INVOKE]


def header(name: str, value: str) -> bytes:
    data = value.encode()
    return bytes([len(name)]) + name.encode() + b"\x07" + len(data).to_bytes(2, "big") + data


def message(payload: Any, **headers: str) -> bytes:
    """An AWS event stream message; `_` in a header's name becomes `-`."""
    head = b"".join(header(":" + name.replace("_", "-"), value) for name, value in headers.items())
    data = payload if isinstance(payload, bytes) else json.dumps(payload, ensure_ascii=False).encode()
    prelude = (len(head) + len(data) + 16).to_bytes(4, "big") + len(head).to_bytes(4, "big")
    whole = prelude + crc32(prelude).to_bytes(4, "big") + head + data
    return whole + crc32(whole).to_bytes(4, "big")


def event(name: str, payload: Any) -> bytes:
    return message(payload, event_type=name, content_type="application/json", message_type="event")


def exception(name: str, payload: Any) -> bytes:
    return message(payload, exception_type=name, content_type="application/json", message_type="exception")


def chunk(inner: Any) -> bytes:
    """An event of Invoke's stream, which wraps one of the vendor's."""
    data = inner if isinstance(inner, bytes) else json.dumps(inner, ensure_ascii=False).encode()
    return event("chunk", {"bytes": base64.b64encode(data).decode(), "p": "abcdefg"})


def binary(frames: Sequence[bytes]) -> StreamBody:
    return StreamBody(tuple(frames), tuple(range(len(frames))), binary=True)


def lines(*values: Any) -> list[bytes]:
    return [json.dumps(value, ensure_ascii=False).encode() + b"\n" for value in values]


def delta(index: int, said: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return "contentBlockDelta", {"contentBlockIndex": index, "delta": said, "p": "abc"}


CONVERSE_EVENTS: list[tuple[str, dict[str, Any]]] = [
    ("messageStart", {"role": "assistant", "p": "abcd"}),
    delta(0, {"reasoningContent": {"text": "想 "}}),
    delta(0, {"reasoningContent": {"text": "🙂"}}),
    delta(0, {"reasoningContent": {"signature": "sig"}}),
    ("contentBlockStop", {"contentBlockIndex": 0}),
    delta(1, {"text": "你"}),
    delta(1, {"text": "好"}),
    ("contentBlockStop", {"contentBlockIndex": 1}),
    ("contentBlockStart", {"contentBlockIndex": 2, "start": {"toolUse": {"toolUseId": "t1", "name": "f"}}}),
    delta(2, {"toolUse": {"input": ""}}),
    delta(2, {"toolUse": {"input": '{"城市":'}}),
    delta(2, {"toolUse": {"input": '"成都"}'}}),
    ("contentBlockStop", {"contentBlockIndex": 2}),
    ("messageStop", {"stopReason": "tool_use", "p": "a"}),
    (
        "metadata",
        {
            "usage": {"inputTokens": 10, "outputTokens": 7, "totalTokens": 122, "cacheReadInputTokens": 100,
                      "cacheWriteInputTokens": 5},
            "metrics": {"latencyMs": 9},
        },
    ),
]  # fmt: skip
CONVERSE_FRAMES = [event(name, value) for name, value in CONVERSE_EVENTS]
NOVA_FRAMES = [chunk({name: value}) for name, value in CONVERSE_EVENTS]
ANTHROPIC_EVENTS: list[dict[str, Any]] = [
    {
        "type": "message_start",
        "message": {"id": "msg_bdrk_1", "model": "claude-x", "role": "assistant", "content": [],
                    "usage": {"input_tokens": 3, "output_tokens": 1}},
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "你好 🙂"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop", METRICS: {"inputTokenCount": 3, "outputTokenCount": 2, "invocationLatency": 8}},
]  # fmt: skip
INVOKE_FRAMES = [chunk(value) for value in ANTHROPIC_EVENTS]
WEATHER = {"function": {"index": 0, "name": "weather", "arguments": {"城市": "成都", "n": 1}}}
OLLAMA_LINES = lines(
    {"model": "m", "created_at": "t", "message": {"role": "assistant", "thinking": "想 "}, "done": False},
    {"model": "m", "created_at": "t", "message": {"role": "assistant", "content": "", "thinking": "🙂"}, "done": False},
    {"model": "m", "created_at": "t", "message": {"role": "assistant", "content": "你"}, "done": False},
    {"model": "m", "created_at": "t", "message": {"role": "assistant", "content": "好"}, "done": False},
    {"model": "m", "created_at": "t", "message": {"role": "assistant", "content": "", "tool_calls": [WEATHER]},
     "done": False},
    {"model": "m", "created_at": "t", "message": {"role": "assistant", "content": ""}, "done_reason": "stop",
     "done": True, "total_duration": 5, "prompt_eval_count": 26, "eval_count": 9, "eval_duration": 4},
)  # fmt: skip
GENERATE_LINES = lines(
    {"model": "m", "created_at": "t", "response": "", "thinking": "想", "done": False},
    {"model": "m", "created_at": "t", "response": "你好 🙂", "done": False},
    {"model": "m", "created_at": "t", "response": "", "done": True, "done_reason": "length", "context": [1, 2, 3],
     "prompt_eval_count": 4, "eval_count": 5},
)  # fmt: skip


def cohere(kind: str, index: int | None = None, **said: Any) -> dict[str, Any]:
    placed = {} if index is None else {"index": index}
    return {"type": kind, **placed, **({"delta": {"message": said}} if said else {})}


COHERE_EVENTS: list[dict[str, Any]] = [
    {"id": "c1", **cohere("message-start", role="assistant", content=[], tool_plan="", tool_calls=[], citations=[])},
    cohere("tool-plan-delta", tool_plan="I will "),
    cohere("tool-plan-delta", tool_plan="看。"),
    cohere("content-start", 0, content={"type": "thinking", "thinking": ""}),
    cohere("content-delta", 0, content={"thinking": "想 🙂"}),
    cohere("content-end", 0),
    cohere("content-start", 1, content={"type": "text", "text": ""}),
    cohere("content-delta", 1, content={"text": "你"}),
    cohere("content-delta", 1, content={"text": "好"}),
    cohere("content-end", 1),
    cohere("tool-call-start", 0, tool_calls={"id": "f_1", "type": "function",
                                             "function": {"name": "f", "arguments": ""}}),
    cohere("tool-call-delta", 0, tool_calls={"function": {"arguments": '{"城市":'}}),
    cohere("tool-call-delta", 0, tool_calls={"function": {"arguments": '"成都"}'}}),
    cohere("tool-call-end", 0),
    cohere("tool-call-start", 1, tool_calls={"id": "g_1", "type": "function",
                                             "function": {"name": "g", "arguments": ""}}),
    cohere("tool-call-end", 1),
    {
        "type": "message-end",
        "delta": {
            "finish_reason": "TOOL_CALL",
            "usage": {"billed_units": {"input_tokens": 1, "output_tokens": 2},
                      "tokens": {"input_tokens": 1549, "output_tokens": 95}, "cached_tokens": 1504},
        },
    },
]  # fmt: skip
COHERE_FRAMES = [*named(COHERE_EVENTS), DONE]
COMPLETIONS_FRAMES = [
    frame({"id": "cmpl-1", "object": "text_completion", "model": "m", "choices": [{"index": 0, "text": "你"}]}),
    frame(
        {"id": "cmpl-1", "object": "text_completion", "choices": [{"index": 0, "text": "好", "finish_reason": "stop"}]}
    ),
    frame({"id": "cmpl-1", "choices": [], "usage": {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5}}),
    DONE,
]
STREAMS = [
    (CONVERSE_STREAM, CONVERSE_FRAMES),
    (INVOKE_STREAM, NOVA_FRAMES),
    (INVOKE_STREAM, INVOKE_FRAMES),
    (OLLAMA, OLLAMA_LINES),
    (GENERATE, GENERATE_LINES),
    (COHERE, COHERE_FRAMES),
    (COMPLETIONS, COMPLETIONS_FRAMES),
]
