"""The wire formats `ollama.chat` and `ollama.generate`: Ollama's own API, streamed as one JSON object a line."""

from __future__ import annotations

from typing import ClassVar

from wiretape.model.call import CallRequest, Media, Message, ModelCall, Text
from wiretape.model.http import Exchange, Headers, Request
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire import recognition
from wiretape.wire.answers import response_claim
from wiretape.wire.base import Claim, Memo, Volatile
from wiretape.wire.call_frame import (
    came_whole,
    frame_call,
    json_error,
    settings_of,
    unknown_message,
    unreadable_request,
)
from wiretape.wire.lenient import body_json, items, obj, string
from wiretape.wire.ollama.answers import context_id, decode_response, is_no_generation
from wiretape.wire.ollama.messages import request_message
from wiretape.wire.ollama.next_request import OllamaGrower
from wiretape.wire.openai.chat_messages import chat_tools

CHAT, GENERATE = "/api/chat", "/api/generate"
_CARRIED = frozenset({"model", "messages", "tools"})
_GENERATE_CARRIED = frozenset({"model", "system", "prompt", "images"})


class OllamaChat:
    name: ClassVar[str] = "ollama.chat"
    volatile: ClassVar[Volatile] = Volatile(settings=frozenset({"keep_alive"}))
    grower: ClassVar[OllamaGrower] = OllamaGrower()

    def claims(self, request: Request) -> Claim:
        if not recognition.is_post(request):
            return Claim.NO
        if _is_ours(request, CHAT):
            return _path_claim(body_json(request.body), "messages")  # many a web page has such a path
        return Claim.BODY if recognition.shown_format(request) == self.name else Claim.NO

    def claims_response(self, exchange: Exchange) -> Claim:
        return response_claim(exchange, self.name, ours=_is_ours(exchange.request, CHAT))

    def decode(self, exchange: Exchange, memo: Memo) -> ModelCall:
        return _decode(self.name, exchange, self.decode_request(exchange.request, memo))

    def decode_request(self, request: Request, memo: Memo) -> CallRequest:
        body = body_json(request.body)
        return _chat_request(body, memo) if isinstance(body, dict) else unreadable_request(request.body)

    def error(self, status: int, message: str, code: str) -> tuple[Headers, bytes]:
        return json_error({"error": message})


class OllamaGenerate:
    name: ClassVar[str] = "ollama.generate"
    volatile: ClassVar[Volatile] = Volatile(settings=frozenset({"keep_alive"}))

    def claims(self, request: Request) -> Claim:
        if recognition.is_post(request) and _is_ours(request, GENERATE):
            return _path_claim(body_json(request.body), "prompt")
        return Claim.NO

    def claims_response(self, exchange: Exchange) -> Claim:
        return response_claim(exchange, self.name, ours=_is_ours(exchange.request, GENERATE))

    def decode(self, exchange: Exchange, memo: Memo) -> ModelCall:
        return _decode(self.name, exchange, self.decode_request(exchange.request, memo))

    def decode_request(self, request: Request, memo: Memo) -> CallRequest:
        body = body_json(request.body)
        return _generate_request(body) if isinstance(body, dict) else unreadable_request(request.body)

    def error(self, status: int, message: str, code: str) -> tuple[Headers, bytes]:
        return json_error({"error": message})


def _is_ours(request: Request, path: str) -> bool:
    return recognition.path_of(request.url).endswith(path)


def _path_claim(body: Json, member: str) -> Claim:
    if not string(obj(body).get("model")):
        return Claim.NO
    return Claim.CERTAIN if member in obj(body) else Claim.PATH


def _decode(name: str, exchange: Exchange, request: CallRequest) -> ModelCall:
    response = None if exchange.response is None else decode_response(exchange.response, came_whole(exchange))
    idle = is_no_generation(request, response)
    return frame_call(exchange, name, request, response, "prewarm" if idle else "inference")


def _chat_request(body: JsonObject, memo: Memo) -> CallRequest:
    raw = body.get("messages")
    if isinstance(raw, list):
        messages = memo.each("ollama.chat", raw, request_message)
    else:
        messages = () if raw is None else (unknown_message("messages", raw, "unknown"),)
    tools = body.get("tools")
    return CallRequest(
        model=string(body.get("model")),
        messages=messages,
        tools=memo.of("openai.chat.tools", tools, chat_tools) if isinstance(tools, list) else (),
        settings=settings_of(body, _CARRIED),
        stream=body.get("stream") is not False,
        segments=((0, "messages"),),
    )


def _generate_request(body: JsonObject) -> CallRequest:
    messages: list[Message] = []
    segments: list[tuple[int, str]] = []
    for name, role in (("system", "system"), ("prompt", "user")):
        value = body.get(name)
        if not value:
            continue
        segments.append((len(messages), name))
        said = Message(role, (Text(value),), ("",)) if isinstance(value, str) else unknown_message(name, value, role)
        messages.append(said)
    images = items(body.get("images"))
    if images:
        segments.append((len(messages), "images"))
        messages += [
            Message("user", (Media("image", i if isinstance(i, dict) else {"image": i}),), ("",)) for i in images
        ]
    return CallRequest(
        model=string(body.get("model")),
        messages=tuple(messages),
        settings=settings_of(body, _GENERATE_CARRIED),
        stream=body.get("stream") is not False,
        segments=tuple(segments),
        scalars=frozenset({"system", "prompt"}),
        previous_response_id=context_id(body.get("context")),
    )
