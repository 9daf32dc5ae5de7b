"""The wire format `anthropic.messages`: the Messages API of Anthropic and of compatible servers."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import ClassVar

from wiretape.model.call import CallKind, CallRequest, CallResponse, Control, Message, ToolCall
from wiretape.model.http import Exchange, Headers, Request, Response
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire import recognition
from wiretape.wire.anthropic.blocks import add_blocks, request_message, system_block, tool_specs
from wiretape.wire.anthropic.stream import AnthropicAssembler
from wiretape.wire.anthropic.usage import anthropic_finish, anthropic_usage
from wiretape.wire.base import Claim, Memo, Volatile
from wiretape.wire.content import MessageBuilder
from wiretape.wire.decoding import (
    HttpFormat,
    RequestParts,
    assemble,
    count_response,
    json_error,
    listed_messages,
    read_response,
    response_error,
    settings_of,
    stream_response,
    tools_of,
    unknown_message,
)
from wiretape.wire.lenient import NotJson, body_json, is_empty, obj, string
from wiretape.wire.payload import EventPayload
from wiretape.wire.token_counts import without_final_output

_CARRIED = frozenset({"model", "system", "messages", "tools"})
_SHOWS_MESSAGE = frozenset({"content", "stop_reason", "usage"})
_MODEL_IN_PATH = re.compile(r"/models?/([^/]+?)(?::(?:rawPredict|streamRawPredict)|/invoke(?:-with-response-stream)?)$")
_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


class AnthropicMessages(HttpFormat):
    name: ClassVar[str] = "anthropic.messages"
    volatile: ClassVar[Volatile] = Volatile(
        settings=frozenset({"diagnostics", "cache_control", "fallback_credit_token"}),
        nested=frozenset({("metadata", "user_id"), ("thread", "previous_message_id")}),
    )

    def claims(self, request: Request) -> Claim:
        if not recognition.is_post(request):
            return Claim.NO
        path = recognition.path_of(request.url)
        if path.endswith(("/messages", "/messages/count_tokens")) and not recognition.is_other(request):
            return _path_claim(body_json(request.body), path, request.headers)
        return Claim.BODY if recognition.shown_format(request) == self.name else Claim.NO

    def _kind(self, exchange: Exchange, request: CallRequest) -> CallKind:
        path = recognition.path_of(exchange.request.url)
        if path.endswith(("/messages/count_tokens", "/count-tokens:rawPredict")):
            return "token_count"
        return "prewarm" if request.settings.get("max_tokens") == 0 else "inference"

    def _decode_body(self, body: JsonObject, request: Request, memo: Memo) -> CallRequest:
        decoded = messages_request(body, memo)
        named = _MODEL_IN_PATH.search(recognition.path_of(request.url)) if decoded.model is None else None
        return replace(decoded, model=named[1]) if named else decoded

    def _decode_response(self, response: Response, complete: bool, kind: CallKind) -> CallResponse:
        decode_json = count_response if kind == "token_count" else decode_message
        return read_response(response, complete, decode_json, decode_stream)

    def error(self, status: int, message: str, code: str) -> tuple[Headers, bytes]:
        kind = _ERROR_TYPES.get(status, "api_error")
        error = {"type": kind, "message": message, "details": {"error_code": code}}
        return json_error({"type": "error", "error": error, "request_id": None})


def _path_claim(body: Json, path: str, headers: Headers) -> Claim:
    """Bid by path, body and headers: many services have a `/messages`."""
    telling = path.endswith(("/v1/messages", "/messages/count_tokens")) or "anthropic-version" in headers
    if isinstance(body, NotJson):
        return Claim.PATH if telling else Claim.NO
    if not isinstance(obj(body).get("messages"), list):
        return Claim.PATH if telling and "jsonrpc" not in obj(body) else Claim.NO
    return Claim.CERTAIN


def messages_request(body: JsonObject, memo: Memo) -> CallRequest:
    parts = RequestParts()
    system = body.get("system")
    if isinstance(system, list) or not is_empty(system):
        parts.add_value("system", system, system_block, memo, "anthropic.system")
    parts.add("messages", listed_messages(body, request_message, memo, "anthropic.messages"))
    return parts.request(
        string(body.get("model")),
        settings_of(body, _CARRIED),
        tools=tools_of(body, tool_specs, memo, "anthropic.tools"),
        stream=body.get("stream") is True,
        previous_response_id=string(obj(body.get("thread")).get("previous_message_id")),
    )


def decode_message(response: Response, value: Json, truncated: bool = False) -> CallResponse:
    """Decode an answer that is one JSON value. `truncated`: it is the start of a stream that ended early."""
    body = obj(value)
    content = body.get("content")
    error = response_error(response, value)
    into = MessageBuilder()
    if isinstance(content, str):
        into.text(content, ".content")
    else:
        add_blocks(into, content if isinstance(content, list) else [content] if content else [], ".content", truncated)
    refusal = string(obj(body.get("stop_details")).get("explanation")) if not content else None
    into.text(refusal, ".stop_details.explanation", refusal=True)
    if not is_empty(body.get("abandoned")):
        into.extra("abandoned", body["abandoned"])
    role = string(body.get("role")) or "assistant"
    messages = (into.build(role),) if content or refusal or "abandoned" in body else ()
    if error is None and not truncated and _SHOWS_MESSAGE.isdisjoint(body):
        messages = (unknown_message("response", value),)
    raw_finish = string(body.get("stop_reason"))
    last = messages[-1].blocks[-1] if messages and messages[-1].blocks else None
    ends_with_call = isinstance(last, ToolCall) and last.kind != "server"
    return CallResponse(
        status=response.status,
        model=_final_model(messages) or string(body.get("model")),
        id=string(body.get("id")),
        messages=messages,
        finish=anthropic_finish(raw_finish, ends_with_call) if raw_finish or not truncated else None,
        raw_finish=raw_finish,
        usage=anthropic_usage(body.get("usage")),
        error=error,
        diagnostics=body.get("diagnostics"),
    )


def _final_model(messages: tuple[Message, ...]) -> str | None:
    """Return the last model of a fallback: it gave the answer."""
    blocks = [b for m in messages for b in m.blocks if isinstance(b, Control) and b.kind == "fallback"]
    return string(obj(obj(blocks[-1].raw).get("to")).get("model")) if blocks else None


def decode_stream(response: Response, payload: EventPayload) -> CallResponse:
    """Decode an answer that arrived as events, in any framing."""
    assembler = assemble(AnthropicAssembler(), payload.events)
    message = assembler.value()
    decoded = decode_message(response, message, truncated=not assembler.finished)
    if assembler.cache_inside:
        decoded = replace(decoded, usage=anthropic_usage(message["usage"], cache_inside=True))
    if not assembler.output_is_final:
        decoded = replace(decoded, usage=without_final_output(decoded.usage))
    return stream_response(decoded, response, payload, assembler, complete=assembler.finished)
