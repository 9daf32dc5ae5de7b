"""The wire format `cohere.chat`: version 2 of Cohere's chat API."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from wiretape.model.call import (
    CallKind,
    CallRequest,
    CallResponse,
    Finish,
    Message,
    Reasoning,
    ToolCall,
    ToolResult,
    Usage,
)
from wiretape.model.http import Exchange, Headers, Request, Response
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire import recognition
from wiretape.wire.base import Claim, Memo, Volatile
from wiretape.wire.cohere.stream import CohereAssembler
from wiretape.wire.decoding import (
    HttpFormat,
    assemble,
    json_error,
    listed_messages,
    read_response,
    response_claim,
    response_error,
    settings_of,
    stream_response,
    tools_of,
    unknown_message,
    with_tool_calls,
)
from wiretape.wire.lenient import body_json, dumps, first, number, obj, string
from wiretape.wire.openai.chat_messages import chat_message, chat_tools
from wiretape.wire.payload import EventPayload
from wiretape.wire.token_counts import judged_usage

_CARRIED = frozenset({"model", "messages", "tools"})
_SHOWS_ANSWER = frozenset({"message", "finish_reason", "usage"})
FINISH: dict[str, Finish] = {
    "COMPLETE": "stop",
    "STOP_SEQUENCE": "stop",
    "MAX_TOKENS": "length",
    "ERROR_LIMIT": "length",
    "TOOL_CALL": "tool_calls",
    "ERROR_TOXIC": "content_filter",
    "ERROR": "error",
    "TIMEOUT": "error",
}


class CohereChat(HttpFormat):
    name: ClassVar[str] = "cohere.chat"
    volatile: ClassVar[Volatile] = Volatile()

    def claims(self, request: Request) -> Claim:
        if not (recognition.is_post(request) and _has_path(request)):
            return Claim.NO
        return Claim.CERTAIN if isinstance(obj(body_json(request.body)).get("messages"), list) else Claim.NO

    def claims_response(self, exchange: Exchange) -> Claim:
        return response_claim(exchange, self.name, own_path=_has_path(exchange.request))

    def _decode_body(self, body: JsonObject, request: Request, memo: Memo) -> CallRequest:
        return _chat_request(body, memo)

    def _decode_response(self, response: Response, complete: bool, kind: CallKind) -> CallResponse:
        return read_response(response, complete, _answer, _stream)

    def error(self, status: int, message: str, code: str) -> tuple[Headers, bytes]:
        return json_error({"message": message, "code": code})


def _has_path(request: Request) -> bool:
    return recognition.path_of(request.url).endswith("/v2/chat")


def _chat_request(body: JsonObject, memo: Memo) -> CallRequest:
    return CallRequest(
        model=string(body.get("model")),
        messages=listed_messages(body, _request_message, memo, "cohere.chat"),
        tools=tools_of(body, chat_tools, memo, "openai.chat.tools"),
        settings=settings_of(body, _CARRIED),
        stream=body.get("stream") is True,
        segments=((0, "messages"),),
    )


def _request_message(raw: Json) -> Message:
    if not isinstance(raw, dict):
        return unknown_message("message", raw, "unknown")
    message = _message(raw)
    if raw.get("role") != "tool" or not isinstance(raw.get("content"), list):
        return message
    blocks = tuple(_with_documents(b) if isinstance(b, ToolResult) else b for b in message.blocks)
    return replace(message, blocks=blocks)


def _with_documents(result: ToolResult) -> ToolResult:
    """Return a tool result whose documents are part of its text."""
    data = [obj(obj(part).get("document")).get("data") for part in result.parts]
    texts = [value if isinstance(value, str) else dumps(value) for value in data if value is not None]
    others = tuple(part for part, value in zip(result.parts, data, strict=True) if value is None)
    return replace(result, text="\n".join([*filter(None, [result.text]), *texts]), parts=others)


def _message(raw: JsonObject, answer: bool = False, truncated: bool = False) -> Message:
    """Decode a message as in Chat Completions; the plan before tool calls becomes reasoning."""
    plan = string(raw.get("tool_plan"))
    message = chat_message({k: v for k, v in raw.items() if k != "tool_plan"}, history=not answer, truncated=truncated)
    if plan is None:
        return message
    blocks, paths = (Reasoning(plan), *message.blocks), (".tool_plan", *message.block_paths)
    return replace(message, blocks=blocks, block_paths=paths)


def _answer(response: Response, value: Json, truncated: bool = False) -> CallResponse:
    body = obj(value)
    error = response_error(response, value)
    raw_message = body.get("message")
    message = _message(raw_message, answer=True, truncated=truncated) if isinstance(raw_message, dict) else None
    messages = (message,) if message is not None and (message.blocks or message.extra) else ()
    if error is None and not truncated and _SHOWS_ANSWER.isdisjoint(body):
        messages = (unknown_message("response", value),)
    raw_finish = string(body.get("finish_reason"))
    has_calls = any(isinstance(block, ToolCall) for m in messages for block in m.blocks)
    finish = FINISH.get(raw_finish or "")
    return CallResponse(
        status=response.status,
        id=string(body.get("id")),
        messages=messages,
        finish=with_tool_calls(finish, has_calls and not truncated),
        raw_finish=raw_finish,
        usage=cohere_usage(body.get("usage")),
        error=error,
    )


def cohere_usage(raw: Json) -> Usage | None:
    """Read the counted tokens, not the billed ones. Cached tokens are part of the input, unless they exceed it."""
    counts = obj(raw)
    counted, billed = obj(counts.get("tokens")), obj(counts.get("billed_units"))
    prompt = first(number(counted.get("input_tokens")), number(billed.get("input_tokens")))
    output = first(number(counted.get("output_tokens")), number(billed.get("output_tokens")))
    return judged_usage(counts, prompt, output, None, cached=number(counts.get("cached_tokens")))


def _stream(response: Response, payload: EventPayload) -> CallResponse:
    assembler = assemble(CohereAssembler(), payload.events)
    decoded = _answer(response, assembler.value(), truncated=not assembler.finished)
    return stream_response(decoded, response, payload, assembler, complete=assembler.finished)
