"""The wire format `bedrock.invoke`: InvokeModel and its stream, in which each vendor speaks its own language.

Anthropic's messages, Nova's Converse shapes and Chat Completions are read as everywhere; the rest are prompts with a
text for an answer, or embeddings. In a stream, each message of the AWS event stream wraps one event of the vendor's.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import replace
from typing import ClassVar

from wiretape.model.call import (
    CallKind,
    CallRequest,
    CallResponse,
    Media,
    Message,
    ModelCall,
    Text,
    ToolCall,
    Unknown,
    Usage,
)
from wiretape.model.http import Exchange, Headers, Request, Response
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire import recognition
from wiretape.wire.answers import leftovers, text_response, token_time
from wiretape.wire.anthropic import messages as anthropic_messages
from wiretape.wire.base import Claim, Memo, Volatile
from wiretape.wire.bedrock import converse as bedrock_converse
from wiretape.wire.bedrock.chunks import vendor_events, vendor_of
from wiretape.wire.bedrock.eventstream import AwsEvents, is_event_stream, read_events
from wiretape.wire.bedrock.invoke_next_request import InvokeGrower, vendor_of_request
from wiretape.wire.bedrock.texts import PROMPTS, TextAssembly, is_text_answer, prompt_request, text_usage, texts
from wiretape.wire.bedrock.usage import METRICS, converse_finish, header_usage, metrics_usage
from wiretape.wire.call_frame import came_whole, frame_call, unknown_message, unreadable_request
from wiretape.wire.failures import call_error, has_error
from wiretape.wire.lenient import body_json, dumps, items, load, obj, string
from wiretape.wire.openai import chat as openai_chat
from wiretape.wire.payload import EventPayload, JsonPayload, TextPayload, read_payload
from wiretape.wire.side_calls import side_request, side_response

_TAIL = re.compile(rf"{bedrock_converse.MODEL_IN_PATH}/(?P<verb>invoke|invoke-with-response-stream|count-tokens)$")
_EMBEDDINGS = ("embedding", "embeddings", "embeddingsByType")
_EMBEDDED = ("texts", "singleEmbeddingParams", "segmentedEmbeddingParams", "inputImage", "inputText", "inputs")
_COUNTED = "input.invokeModel.body"


class BedrockInvoke:
    name: ClassVar[str] = "bedrock.invoke"
    volatile: ClassVar[Volatile] = Volatile(
        settings=frozenset({"diagnostics", "cache_control", "user"}), nested=frozenset({("metadata", "user_id")})
    )
    grower: ClassVar[InvokeGrower] = InvokeGrower()

    def claims(self, request: Request) -> Claim:
        tail = _TAIL.search(recognition.path_of(request.url)) if recognition.is_post(request) else None
        if tail is None:
            return Claim.NO
        body = body_json(request.body)
        if tail["verb"] == "count-tokens":
            return Claim.CERTAIN if "invokeModel" in obj(obj(body).get("input")) else Claim.PATH
        return Claim.CERTAIN if isinstance(body, dict) else Claim.PATH

    def claims_response(self, exchange: Exchange) -> Claim:
        response = exchange.response
        if response is None or not recognition.is_post(exchange.request) or not is_event_stream(response):
            return Claim.NO
        return Claim.RESPONSE if any(e.name == "chunk" for e in read_events(response).events) else Claim.NO

    def decode(self, exchange: Exchange, memo: Memo) -> ModelCall:
        request = self.decode_request(exchange.request, memo)
        kind = _kind(exchange)
        response = None
        if exchange.response is not None:
            response = _decode_response(exchange.response, came_whole(exchange), kind)
        return frame_call(exchange, self.name, request, response, kind)

    def decode_request(self, request: Request, memo: Memo) -> CallRequest:
        body = body_json(request.body)
        tail = _TAIL.search(recognition.path_of(request.url))
        counted = obj(obj(obj(body).get("input")).get("invokeModel"))
        if not isinstance(body, dict):
            decoded = unreadable_request(request.body)
        elif counted and tail is not None and tail["verb"] == "count-tokens":
            decoded = _counted_request(counted.get("body"), memo)
        else:
            decoded = _vendor_request(body, request.headers, memo)
        if tail is None:
            return decoded
        return replace(decoded, model=tail["model"], stream=tail["verb"] == "invoke-with-response-stream")

    def error(self, status: int, message: str, code: str) -> tuple[Headers, bytes]:
        return bedrock_converse.bedrock_error(status, message)


def _kind(exchange: Exchange) -> CallKind:
    path = recognition.path_of(exchange.request.url)
    if path.endswith("/count-tokens"):
        return "token_count"
    body = obj(body_json(exchange.request.body))
    if "documents" in body and "query" in body:
        return "rerank"
    answer = obj(body_json(exchange.response.body)) if exchange.response is not None else {}
    return "embedding" if _embeds(body, path) or any(name in answer for name in _EMBEDDINGS) else "inference"


def _embeds(body: JsonObject, path: str = "") -> bool:
    if "embed" in path or "EMBEDDING" in str(body.get("taskType")):
        return any(name in body for name in _EMBEDDED)
    return "texts" in body and "input_type" in body


def _vendor_request(body: JsonObject, headers: Headers, memo: Memo) -> CallRequest:
    """The request in the language of its vendor, which its members tell."""
    match vendor_of_request(body, headers):
        case "anthropic.messages":
            return anthropic_messages.messages_request(body, memo)
        case "bedrock.converse":
            return bedrock_converse.converse_request(body, memo)
        case "openai.chat":
            return openai_chat.chat_request(body, memo)
        case None:
            return _prompt_request(body)


def _prompt_request(body: JsonObject) -> CallRequest:
    """What has no history: a prompt, or something to embed or rank."""
    if "query" in body and "documents" in body:
        return side_request(body, "rerank")
    if "texts" in body or ("images" in body and not any(name in body for name in PROMPTS)):
        return side_request(body, "embedding")
    nova = obj(obj(body.get("singleEmbeddingParams")).get("text")).get("value")
    if isinstance(nova, str):
        where = "singleEmbeddingParams.text.value"
        settings = {key: value for key, value in body.items() if key != "singleEmbeddingParams"}
        message = Message("user", (Text(nova),), ("",))
        return CallRequest(None, (message,), settings=settings, segments=((0, where),), scalars=frozenset({where}))
    if any(body.get(name) for name in PROMPTS):
        return prompt_request(body)
    message = unknown_message("request", body, "user")
    return CallRequest(None, (message,), segments=((0, ""),), scalars=frozenset({""}))


def _counted_request(raw: Json, memo: Memo) -> CallRequest:
    """A request whose tokens are counted stands in base64 inside the body: its blocks have no path of their own."""
    try:
        body = load(base64.b64decode(raw if isinstance(raw, str) else "", validate=True))
    except (binascii.Error, ValueError):
        body = None
    if isinstance(body, dict):
        decoded = _vendor_request(body, Headers(), memo)
        messages = tuple(replace(m, block_paths=("",) * len(m.blocks)) for m in decoded.messages)
    else:
        decoded, messages = CallRequest(None, ()), (unknown_message("body", raw, "unknown"),)
    return replace(decoded, messages=messages, segments=((0, _COUNTED),), scalars=frozenset({_COUNTED}))


def _decode_response(response: Response, whole: bool, kind: CallKind) -> CallResponse:
    if is_event_stream(response):
        return _stream(response, read_events(response))
    payload = read_payload(response)
    match payload:
        case JsonPayload(value=value) if kind == "token_count":
            return bedrock_converse.count_response(response, value)
        case JsonPayload() if kind in ("embedding", "rerank"):
            return side_response(response, whole, kind)
        case JsonPayload(value=value):
            decoded = _answer(response, value)
            return decoded if decoded.usage is not None else replace(decoded, usage=header_usage(response.headers))
        case EventPayload():
            return _vendor_stream(response, payload)
        case TextPayload(text=text):
            return text_response(response, text, whole)


def _answer(response: Response, value: Json) -> CallResponse:
    """An unstreamed answer in the language of its vendor."""
    body = obj(value)
    if response.status >= 400 or has_error(value):
        error = call_error(response.status, value, response.headers)
        return CallResponse(response.status, error=error)
    if body.get("type") == "message":
        return anthropic_messages.decode_message(response, value)
    if "output" in body or "stopReason" in body:
        return bedrock_converse.decode_answer(response, value)
    if any("message" in obj(choice) for choice in items(body.get("choices"))):
        return openai_chat.decode_completion(response, value)
    if is_text_answer(body):
        return _text_answer(response, body)
    images = [image for image in items(body.get("images")) if isinstance(image, str)]
    message = unknown_message("response", value)
    if images:
        message = Message("assistant", tuple(Media("image", {"image": i}) for i in images), ("",) * len(images))
    return CallResponse(response.status, messages=(message,))


def _text_answer(response: Response, body: JsonObject, cut: bool = False) -> CallResponse:
    said = list(texts(body))
    calls = [_cohere_call(obj(call)) for call in items(body.get("tool_calls"))]
    messages = [
        Message("assistant", (Text(text),), (path,), () if n == 0 else (("choice", n),))
        for n, (text, path, _) in enumerate(said)
        if text
    ]
    if calls:
        messages.append(Message("assistant", tuple(calls), tuple(f".tool_calls[{n}]" for n in range(len(calls)))))
    raw_finish = said[0].reason if said else None
    return CallResponse(
        status=response.status,
        id=string(body.get("response_id")) or string(body.get("id")),
        messages=tuple(messages),
        finish=converse_finish(raw_finish, bool(calls)) if raw_finish or not cut else None,
        raw_finish=raw_finish,
        usage=text_usage(body),
    )


def _cohere_call(raw: JsonObject) -> ToolCall | Unknown:
    name = string(raw.get("name"))
    return ToolCall(None, name, dumps(raw.get("parameters", {}))) if name else Unknown("tool_call", raw)


def _stream(response: Response, read: AwsEvents) -> CallResponse:
    decoded = _vendor_stream(response, vendor_events(read))
    return replace(decoded, messages=decoded.messages + read.leftovers())


def _vendor_stream(response: Response, payload: EventPayload) -> CallResponse:
    """The vendor's events, put together in the vendor's own way; the invocation's metrics fill in what they lack."""
    match vendor_of(payload):
        case "anthropic.messages":
            decoded = anthropic_messages.decode_stream(response, payload)
        case "bedrock.converse":
            decoded = bedrock_converse.decode_stream(response, payload)
        case "openai.chat":
            decoded = openai_chat.decode_stream(response, payload)
        case None:
            decoded = _text_stream(response, payload)
    values = [event.value for event in payload.events if isinstance(event.value, dict) and event.name != "error"]
    metrics = next((value[METRICS] for value in reversed(values) if METRICS in value), None)
    return replace(decoded, usage=_filled(decoded.usage, metrics_usage(metrics)))


def _filled(told: Usage | None, metrics: Usage | None) -> Usage | None:
    if told is None or metrics is None:
        return told or metrics
    if told.input is not None and told.output is not None:
        return told
    return replace(metrics, reasoning=told.reasoning, raw={**told.raw, METRICS: metrics.raw})


def _text_stream(response: Response, payload: EventPayload) -> CallResponse:
    assembly = TextAssembly([], {})
    strange: list[Json] = []
    error = None
    for event in payload.events:
        body = obj(event.value)
        if event.name == "error" or has_error(event.value):
            error = call_error(response.status, event.value, response.headers, "mid_stream")
        elif is_text_answer(body) or METRICS in body:
            assembly.add(body, event.ms)
        else:
            strange.append(event.value)
    decoded = _text_answer(response, assembly.value(), cut=not assembly.finished)
    return replace(
        decoded,
        messages=decoded.messages + leftovers(payload, strange),
        error=error,
        complete=assembly.finished,
        streamed=True,
        first_token_at=token_time(response, assembly.first_ms),
    )
