"""The wire format `openai.chat`: Chat Completions of OpenAI and of compatible servers."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import ClassVar

from wiretape.model.call import CallKind, CallRequest, CallResponse, Message, ModelCall, Usage
from wiretape.model.http import Exchange, Headers, Request, Response
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire import recognition
from wiretape.wire.base import Claim, Memo, Volatile
from wiretape.wire.decoding import (
    HttpFormat,
    assemble,
    calls_client_tools,
    json_error,
    listed_messages,
    read_response,
    response_error,
    served_tier,
    settings_of,
    stream_response,
    unknown_message,
)
from wiretape.wire.lenient import body_json, items, number, obj, string
from wiretape.wire.openai.chat_messages import chat_message, chat_tools, request_message
from wiretape.wire.openai.chat_stream import ChatAssembler
from wiretape.wire.openai.usage import chat_finish, openai_usage
from wiretape.wire.payload import EventPayload

_MODEL_IN_PATH = re.compile(r"/(?:deployments|engines)/([^/]+)/chat/completions$")
_CARRIED = frozenset({"model", "messages", "tools", "functions"})
_SHOWS_COMPLETION = frozenset({"choices", "usage", "object"})


class OpenAIChat(HttpFormat):
    name: ClassVar[str] = "openai.chat"
    volatile: ClassVar[Volatile] = Volatile(
        settings=frozenset(
            {"user", "safety_identifier", "prompt_cache_key", "session_id", "client_metadata", "metadata", "labels"}
        ),
        nested=frozenset({("stream_options", "include_obfuscation"), ("extra_body", "user")}),
    )

    def claims(self, request: Request) -> Claim:
        if not recognition.is_post(request):
            return Claim.NO
        path = recognition.path_of(request.url)
        if path.endswith(("/chat/completions", "/chat/completions/input_tokens")):
            body = body_json(request.body)
            return Claim.CERTAIN if isinstance(obj(body).get("messages"), list) else Claim.PATH
        return Claim.BODY if recognition.shown_format(request) == self.name else Claim.NO

    def decode(self, exchange: Exchange, memo: Memo) -> ModelCall:
        call = super().decode(exchange, memo)
        return replace(call, dialect="doubao") if "model_meta" in call.request.settings else call

    def _kind(self, exchange: Exchange, request: CallRequest) -> CallKind:
        counts = recognition.path_of(exchange.request.url).endswith("/input_tokens")
        return "token_count" if counts else "inference"

    def _decode_body(self, body: JsonObject, request: Request, memo: Memo) -> CallRequest:
        decoded = chat_request(body, memo)
        named = _MODEL_IN_PATH.search(recognition.path_of(request.url)) if decoded.model is None else None
        return replace(decoded, model=named[1]) if named else decoded

    def _decode_response(self, response: Response, complete: bool, kind: CallKind) -> CallResponse:
        return read_response(response, complete, decode_completion, decode_stream)

    def error(self, status: int, message: str, code: str) -> tuple[Headers, bytes]:
        return openai_error(status, message, code)


def openai_error(status: int, message: str, code: str) -> tuple[Headers, bytes]:
    kind = "server_error" if status >= 500 else "rate_limit_error" if status == 429 else "invalid_request_error"
    return json_error({"error": {"message": message, "type": kind, "param": None, "code": code}})


def chat_request(body: JsonObject, memo: Memo) -> CallRequest:
    tools = body.get("tools") or body.get("functions")
    meta = obj(body.get("model_meta"))
    return CallRequest(
        model=_model(body, meta),
        messages=listed_messages(body, request_message, memo, "openai.chat"),
        tools=memo.of("openai.chat.tools", tools, chat_tools) if isinstance(tools, list) else (),
        settings=settings_of(body, _CARRIED),
        stream=body.get("stream") is True or meta.get("stream") is True,
        segments=((0, "messages"),),
    )


def _model(body: JsonObject, meta: JsonObject) -> str | None:
    named = (body.get("model"), meta.get("model_name"), meta.get("name"), meta.get("id"))
    return next((name for name in named if isinstance(name, str) and name), None)


def decode_completion(response: Response, value: Json, truncated: bool = False) -> CallResponse:
    """Decode an answer that is one JSON value. `truncated`: it is the start of a stream that ended early."""
    body = obj(value)
    choices = [c for c in items(body.get("choices")) if isinstance(c, dict)]
    error = response_error(response, value)
    messages = tuple(_choice_message(choice, n, truncated) for n, choice in enumerate(choices))
    if error is None and _SHOWS_COMPLETION.isdisjoint(body):
        messages = (unknown_message("response", value),)
    raw_finish = _raw_finish(choices[0]) if choices else None
    has_calls = calls_client_tools(messages[:1])
    return CallResponse(
        status=response.status,
        model=string(body.get("model")),
        id=string(body.get("id")),
        messages=messages,
        finish=chat_finish(raw_finish, has_calls) if not truncated or raw_finish else None,
        raw_finish=raw_finish,
        usage=_usage(body, choices),
        error=error,
        service_tier=served_tier(body),
    )


def _choice_message(choice: JsonObject, position: int, truncated: bool) -> Message:
    index = number(choice.get("index"))
    message = choice.get("message")
    if not isinstance(message, dict):
        message = choice.get("delta")
    if not isinstance(message, dict):
        message = {"content": choice.get("text") if message is None else message}
    return chat_message(message, truncated=truncated, choice=position if index is None else index)


def _raw_finish(choice: JsonObject) -> str | None:
    """Return `finish_reason`, or the `stop_reason` of some dialects (vLLM has a stop string there, in addition)."""
    return string(choice.get("finish_reason")) or string(choice.get("stop_reason"))


def _usage(body: JsonObject, choices: list[JsonObject]) -> Usage | None:
    raw = body.get("usage") or obj(body.get("x_groq")).get("usage") or (choices[0].get("usage") if choices else None)
    return openai_usage(raw, body.get("timings"))


def decode_stream(response: Response, payload: EventPayload) -> CallResponse:
    """Decode an answer that arrived as events, in any framing."""
    assembler = assemble(ChatAssembler(), payload.events)
    complete = payload.done or assembler.finished
    decoded = decode_completion(response, assembler.value(), truncated=not complete)
    return stream_response(decoded, response, payload, assembler, complete=complete)
