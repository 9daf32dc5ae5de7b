"""The wire formats `ollama.chat` and `ollama.generate` of Ollama's own API."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from wiretape.model.call import CallKind, CallRequest, CallResponse, ModelCall
from wiretape.model.http import Exchange, Headers, Request, Response
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire import recognition
from wiretape.wire.base import Claim, Memo, Volatile
from wiretape.wire.decoding import (
    HttpFormat,
    RequestParts,
    image_message,
    json_error,
    listed_messages,
    response_claim,
    settings_of,
    text_message,
    tools_of,
    unknown_message,
)
from wiretape.wire.lenient import body_json, items, obj, string
from wiretape.wire.ollama.messages import context_id, decode_response, loads_only, request_message
from wiretape.wire.openai.chat_messages import chat_tools

_CARRIED = frozenset({"model", "messages", "tools"})
_GENERATE_CARRIED = frozenset({"model", "system", "prompt", "images"})


class _OllamaFormat(HttpFormat):
    """Base of both formats, which differ in their path and in the request's body."""

    path: ClassVar[str]
    volatile: ClassVar[Volatile] = Volatile(settings=frozenset({"keep_alive"}))

    def claims_response(self, exchange: Exchange) -> Claim:
        return response_claim(exchange, self.name, own_path=_has_path(exchange.request, self.path))

    def decode(self, exchange: Exchange, memo: Memo) -> ModelCall:
        call = super().decode(exchange, memo)
        return replace(call, kind="prewarm") if loads_only(call.request, call.response) else call

    def _decode_response(self, response: Response, complete: bool, kind: CallKind) -> CallResponse:
        return decode_response(response, complete)

    def error(self, status: int, message: str, code: str) -> tuple[Headers, bytes]:
        return json_error({"error": message})


class OllamaChat(_OllamaFormat):
    name: ClassVar[str] = "ollama.chat"
    path = "/api/chat"

    def claims(self, request: Request) -> Claim:
        if not recognition.is_post(request):
            return Claim.NO
        if _has_path(request, self.path):
            return _path_claim(body_json(request.body), "messages")  # many websites have such a path
        return Claim.BODY if recognition.shown_format(request) == self.name else Claim.NO

    def _decode_body(self, body: JsonObject, request: Request, memo: Memo) -> CallRequest:
        return _chat_request(body, memo)


class OllamaGenerate(_OllamaFormat):
    name: ClassVar[str] = "ollama.generate"
    path = "/api/generate"

    def claims(self, request: Request) -> Claim:
        if recognition.is_post(request) and _has_path(request, self.path):
            return _path_claim(body_json(request.body), "prompt")
        return Claim.NO

    def _decode_body(self, body: JsonObject, request: Request, memo: Memo) -> CallRequest:
        return _generate_request(body)


def _has_path(request: Request, path: str) -> bool:
    return recognition.path_of(request.url).endswith(path)


def _path_claim(body: Json, member: str) -> Claim:
    if not string(obj(body).get("model")):
        return Claim.NO
    return Claim.CERTAIN if member in obj(body) else Claim.PATH


def _chat_request(body: JsonObject, memo: Memo) -> CallRequest:
    return CallRequest(
        model=string(body.get("model")),
        messages=listed_messages(body, request_message, memo, "ollama.chat"),
        tools=tools_of(body, chat_tools, memo, "openai.chat.tools"),
        settings=settings_of(body, _CARRIED),
        stream=body.get("stream") is not False,
        segments=((0, "messages"),),
    )


def _generate_request(body: JsonObject) -> CallRequest:
    parts = RequestParts()
    for name, role in (("system", "system"), ("prompt", "user")):
        if value := body.get(name):
            text = isinstance(value, str)
            parts.add_scalar(name, text_message(role, value) if text else unknown_message(name, value, role))
    if images := items(body.get("images")):
        parts.add("images", [image_message(image) for image in images])
    return parts.request(
        string(body.get("model")),
        settings_of(body, _GENERATE_CARRIED),
        stream=body.get("stream") is not False,
        previous_response_id=context_id(body.get("context")),
    )
