"""For each format with a known history: a first request and unstreamed answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from wiretape.model.http import Headers, JsonBody, Request, Response
from wiretape.rerun.next_request.base import RequestBuilder
from wiretape.rerun.next_request.builders import builder_for
from wiretape.wire.base import WireFormat
from wiretape.wire.registry import built_in

Call = tuple[str, str, dict[str, Any]]  # id, name, arguments


@dataclass(frozen=True)
class Format:
    name: str
    url: str
    body: dict[str, Any]
    answer: Callable[[str, Sequence[Call]], dict[str, Any]]
    has_ids: bool = True
    vendor: str = ""  # whose language it is, where a format carries several

    @property
    def label(self) -> str:
        return f"{self.name} {self.vendor}".rstrip()

    @property
    def form(self) -> WireFormat:
        return next(form for form in built_in() if form.name == self.name)

    @property
    def builder(self) -> RequestBuilder:
        builder = builder_for(self.form)
        assert builder is not None
        return builder

    def request(self, body: dict[str, Any]) -> Request:
        return Request("POST", self.url, Headers(), JsonBody(body))

    def response(self, text: str, calls: Sequence[Call]) -> Response:
        return Response(200, Headers([("content-type", "application/json")]), 0, JsonBody(self.answer(text, calls)))


def _chat(text: str, calls: Sequence[Call]) -> dict[str, Any]:
    made = [{"id": i, "type": "function", "function": {"name": n, "arguments": json.dumps(a)}} for i, n, a in calls]
    message = {"role": "assistant", "content": text or None, **({"tool_calls": made} if made else {})}
    finish = "tool_calls" if made else "stop"
    return {
        "id": "c1",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
    }


def _responses(text: str, calls: Sequence[Call]) -> dict[str, Any]:
    output: list[dict[str, Any]] = []
    if text:
        part = {"type": "output_text", "text": text, "annotations": []}
        output.append({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]})
    output += [
        {
            "type": "function_call",
            "id": f"fc_{i}",
            "call_id": i,
            "name": n,
            "arguments": json.dumps(a),
            "status": "completed",
        }
        for i, n, a in calls
    ]
    return {"id": "resp_1", "object": "response", "status": "completed", "output": output}


def _anthropic(text: str, calls: Sequence[Call]) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    content += [{"type": "tool_use", "id": i, "name": n, "input": a} for i, n, a in calls]
    reason = "tool_use" if calls else "end_turn"
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": content,
        "stop_reason": reason,
        "usage": {},
    }


def _gemini(text: str, calls: Sequence[Call]) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": text}] if text else []
    parts += [{"functionCall": {"id": i, "name": n, "args": a}} for i, n, a in calls]
    return {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}


def _converse(text: str, calls: Sequence[Call]) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"text": text}] if text else []
    content += [{"toolUse": {"toolUseId": i, "name": n, "input": a}} for i, n, a in calls]
    reason = "tool_use" if calls else "end_turn"
    return {"output": {"message": {"role": "assistant", "content": content}}, "stopReason": reason, "usage": {}}


def _ollama(text: str, calls: Sequence[Call]) -> dict[str, Any]:
    made = [{"id": i, "function": {"name": n, "arguments": a}} for i, n, a in calls]
    message = {"role": "assistant", "content": text, **({"tool_calls": made} if made else {})}
    return {"model": "m", "message": message, "done": True, "done_reason": "stop"}


def _cohere(text: str, calls: Sequence[Call]) -> dict[str, Any]:
    made = [{"id": i, "type": "function", "function": {"name": n, "arguments": json.dumps(a)}} for i, n, a in calls]
    message: dict[str, Any] = {"role": "assistant"}
    if made:
        message |= {"tool_calls": made, **({"tool_plan": text} if text else {})}
    elif text:
        message["content"] = [{"type": "text", "text": text}]
    return {"id": "c1", "message": message, "finish_reason": "TOOL_CALL" if made else "COMPLETE"}


def _interaction(text: str, calls: Sequence[Call]) -> dict[str, Any]:
    steps: list[dict[str, Any]] = (
        [{"type": "model_output", "content": [{"type": "text", "text": text}]}] if text else []
    )
    steps += [{"type": "function_call", "id": i, "name": n, "arguments": a} for i, n, a in calls]
    return {"id": "i1", "status": "requires_action" if calls else "completed", "steps": steps}


_INVOKE = "https://bedrock-runtime.us-east-1.amazonaws.com/model/m/invoke"
_MESSAGES = {"model": "m", "messages": [{"role": "user", "content": "How warm is it?"}]}
FORMATS = [
    Format("openai.chat", "https://api.openai.com/v1/chat/completions", _MESSAGES, _chat),
    Format(
        "openai.responses",
        "https://api.openai.com/v1/responses",
        {"model": "m", "input": "How warm is it?"},
        _responses,
    ),
    Format("anthropic.messages", "https://api.anthropic.com/v1/messages", {**_MESSAGES, "max_tokens": 9}, _anthropic),
    Format(
        "gemini.generate",
        "https://generativelanguage.googleapis.com/v1beta/models/m:generateContent",
        {"contents": [{"role": "user", "parts": [{"text": "How warm is it?"}]}]},
        _gemini,
    ),
    Format(
        "bedrock.converse",
        "https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse",
        {"messages": [{"role": "user", "content": [{"text": "How warm is it?"}]}]},
        _converse,
    ),
    Format(
        "gemini.interactions",
        "https://generativelanguage.googleapis.com/v1beta/interactions",
        {"model": "m", "input": "How warm is it?"},
        _interaction,
    ),
    Format(
        "bedrock.invoke",
        _INVOKE,
        {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9, "messages": _MESSAGES["messages"]},
        _anthropic,
        vendor="anthropic",
    ),
    Format(
        "bedrock.invoke",
        _INVOKE,
        {"schemaVersion": "messages-v1", "messages": [{"role": "user", "content": [{"text": "How warm is it?"}]}]},
        _converse,
        vendor="nova",
    ),
    Format("bedrock.invoke", _INVOKE, {"messages": _MESSAGES["messages"]}, _chat, vendor="chat"),
    Format("ollama.chat", "http://localhost:11434/api/chat", {**_MESSAGES, "stream": False}, _ollama),
    Format("cohere.chat", "https://api.cohere.com/v2/chat", _MESSAGES, _cohere),
]
