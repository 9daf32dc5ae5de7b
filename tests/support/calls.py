"""Handmade model calls for tests of the layers above `wire`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wiretape.model.call import (
    Block,
    CallError,
    CallKind,
    CallRequest,
    CallResponse,
    Message,
    ModelCall,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
)
from wiretape.model.http import Ended


def system(text: str) -> Message:
    return Message("system", (Text(text),), (".content",))


def user(text: str) -> Message:
    return Message("user", (Text(text),), (".content",))


def assistant(*blocks: Block | str) -> Message:
    made = tuple(Text(block) if isinstance(block, str) else block for block in blocks)
    return Message("assistant", made, tuple(f".content[{i}]" for i in range(len(made))))


def asks(name: str, arguments: str = "{}", id: str | None = None) -> ToolCall:
    return ToolCall(id, name, arguments)


def thinks(text: str) -> Reasoning:
    return Reasoning(text)


def result(text: str, id: str | None = None, name: str | None = None) -> Message:
    return Message("tool", (ToolResult(id, name, text),), (".content",))


def tools(*names: str) -> tuple[ToolSpec, ...]:
    return tuple(ToolSpec(name, None, {}, "function", {"name": name}) for name in names)


def make_call(
    number: int,
    messages: Sequence[Message],
    answer: Message | Sequence[Message] | str | None = None,
    *,
    offers: Sequence[ToolSpec] = (),
    at: int | None = None,
    ended_at: int | None = None,
    usage: Usage | None = None,
    status: int = 200,
    complete: bool = True,
    kind: CallKind = "inference",
    headers: dict[str, str] | None = None,
    id: str | None = None,
    previous: str | None = None,
    model: str = "m",
    settings: dict[str, Any] | None = None,
    format: str = "openai.chat",
) -> ModelCall:
    """A call that starts at `number` × 100 ms and takes 50, unless said otherwise; without an answer it failed."""
    start = number * 100 if at is None else at
    request = CallRequest(
        model,
        tuple(messages),
        tuple(offers),
        settings=settings or {},
        segments=((0, "messages"),),
        previous_response_id=previous,
    )
    if isinstance(answer, str):
        answer = assistant(answer)
    answers = () if answer is None else (answer,) if isinstance(answer, Message) else tuple(answer)
    error = None if status < 400 else CallError(status, None, None, "refused")
    asked = any(isinstance(block, ToolCall) for message in answers for block in message.blocks)
    response = CallResponse(
        status,
        model,
        id,
        answers,
        finish="error" if error else "tool_calls" if asked else "stop",
        usage=usage,
        error=error,
        complete=complete,
    )
    return ModelCall(
        number,
        number,
        format,
        request,
        response,
        start,
        start + 50 if ended_at is None else ended_at,
        Ended.COMPLETE if complete else Ended.UPSTREAM_CLOSED,
        kind,
        headers=tuple((headers or {}).items()),
    )
