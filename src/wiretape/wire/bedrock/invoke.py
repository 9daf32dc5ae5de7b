"""The wire format `bedrock.invoke`: InvokeModel and its stream, where each vendor has its own format.

Anthropic's messages, Nova's Converse shapes and Chat Completions are decoded by their own formats; other requests are
prompts with a text answer, or embeddings. Each message of the AWS event stream wraps one event of the vendor.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import replace
from typing import ClassVar, Final, Literal, TypeAlias

from wiretape.model.call import (
    CallKind,
    CallRequest,
    CallResponse,
    Media,
    Message,
    Text,
    ToolCall,
    Unknown,
    Usage,
)
from wiretape.model.http import Exchange, Headers, Request, Response
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire import recognition
from wiretape.wire.anthropic import messages as anthropic_messages
from wiretape.wire.base import Claim, Memo, Volatile
from wiretape.wire.bedrock import converse as bedrock_converse
from wiretape.wire.bedrock.converse_stream import EVENTS
from wiretape.wire.bedrock.event_stream import AwsEvents, error_value, is_event_stream, read_events
from wiretape.wire.bedrock.prompt_texts import PROMPTS, TextAssembler, is_text_answer, prompt_request, text_usage, texts
from wiretape.wire.bedrock.usage import METRICS, converse_finish, header_usage, metrics_usage
from wiretape.wire.decoding import (
    HttpFormat,
    assemble,
    count_response,
    response_error,
    stream_response,
    text_response,
    unknown_message,
)
from wiretape.wire.lenient import NotJson, body_json, dumps, items, load, obj, string
from wiretape.wire.openai import chat as openai_chat
from wiretape.wire.payload import Event, EventPayload, JsonPayload, TextPayload, read_payload
from wiretape.wire.side_calls import side_request, side_response

_TAIL = re.compile(rf"{bedrock_converse.MODEL_IN_PATH}/(?P<verb>invoke|invoke-with-response-stream|count-tokens)$")
_EMBEDDINGS = ("embedding", "embeddings", "embeddingsByType")
_EMBEDDED = ("texts", "singleEmbeddingParams", "segmentedEmbeddingParams", "inputImage", "inputText", "inputs")
_COUNTED = "input.invokeModel.body"
_GUARDRAIL = "amazon-bedrock-guardrailAction"  # a member of the answer, or of an event, of any vendor
Vendor: TypeAlias = Literal["anthropic.messages", "bedrock.converse", "openai.chat"]
_ANTHROPIC: Final = frozenset(
    {"message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta"}
    | {"message_stop", "ping"}
)


class BedrockInvoke(HttpFormat):
    name: ClassVar[str] = "bedrock.invoke"
    volatile: ClassVar[Volatile] = Volatile(
        settings=frozenset({"diagnostics", "cache_control", "user"}), nested=frozenset({("metadata", "user_id")})
    )

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
        if recognition.is_agent_runtime(exchange.request):
            return Claim.NO
        payload = vendor_events(read_events(response))
        known = vendor_of(payload) is not None or any(is_text_answer(obj(e.value)) for e in payload.events)
        return Claim.RESPONSE if known else Claim.NO

    def decode_request(self, request: Request, memo: Memo) -> CallRequest:
        decoded = super().decode_request(request, memo)
        tail = _TAIL.search(recognition.path_of(request.url))
        if tail is None:
            return decoded
        return replace(decoded, model=tail["model"], stream=tail["verb"] == "invoke-with-response-stream")

    def _kind(self, exchange: Exchange, request: CallRequest) -> CallKind:
        path = recognition.path_of(exchange.request.url)
        if path.endswith("/count-tokens"):
            return "token_count"
        body = obj(body_json(exchange.request.body))
        if "documents" in body and "query" in body:
            return "rerank"
        answer = obj(body_json(exchange.response.body)) if exchange.response is not None else {}
        return "embedding" if _embeds(body, path) or any(name in answer for name in _EMBEDDINGS) else "inference"

    def _decode_body(self, body: JsonObject, request: Request, memo: Memo) -> CallRequest:
        counted = obj(obj(body.get("input")).get("invokeModel"))
        if counted and recognition.path_of(request.url).endswith("/count-tokens"):
            return _counted_request(counted.get("body"), memo)
        return _vendor_request(body, request.headers, memo)

    def _decode_response(self, response: Response, complete: bool, kind: CallKind) -> CallResponse:
        if is_event_stream(response):
            read = read_events(response)
            decoded = _vendor_stream(response, vendor_events(read))
            return replace(decoded, messages=decoded.messages + read.corrupt_messages())
        payload = read_payload(response)
        match payload:
            case JsonPayload(value=value) if kind == "token_count":
                return count_response(response, value)
            case JsonPayload() if kind in ("embedding", "rerank"):
                return side_response(response, complete, kind)
            case JsonPayload(value=value):
                decoded = _guarded(_answer(response, value), [value])
                return decoded if decoded.usage is not None else replace(decoded, usage=header_usage(response.headers))
            case EventPayload():
                return _vendor_stream(response, payload)
            case TextPayload(text=text):
                return text_response(response, text, complete)

    def error(self, status: int, message: str, code: str) -> tuple[Headers, bytes]:
        return bedrock_converse.bedrock_error(status, message)


def _embeds(body: JsonObject, path: str = "") -> bool:
    if "embed" in path or "EMBEDDING" in str(body.get("taskType")):
        return any(name in body for name in _EMBEDDED)
    return "texts" in body and "input_type" in body


def vendor_of_request(body: JsonObject, headers: Headers | None = None) -> Vendor | None:
    """Return the format that a request is in; None for a prompt, or texts to embed or rank."""
    shown = recognition.body_format(body, headers or Headers())
    if shown == "anthropic.messages":
        return "anthropic.messages"
    if shown == "bedrock.converse" or "schemaVersion" in body:
        return "bedrock.converse"
    return "openai.chat" if isinstance(body.get("messages"), list) else None


def _vendor_request(body: JsonObject, headers: Headers, memo: Memo) -> CallRequest:
    """Decode the request in its vendor's format."""
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
    """Decode a request without a history: a prompt, or texts to embed or rank."""
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
    """Decode a request whose tokens are counted: base64 inside the body, so its blocks have no paths."""
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


def _answer(response: Response, value: Json) -> CallResponse:
    """Decode an unstreamed answer in its vendor's format."""
    body = obj(value)
    if error := response_error(response, value):
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


def _text_answer(response: Response, body: JsonObject, truncated: bool = False) -> CallResponse:
    pieces = list(texts(body))
    calls = [_cohere_call(obj(call)) for call in items(body.get("tool_calls"))]
    messages = [
        Message("assistant", (Text(text),), (path,), () if n == 0 else (("choice", n),))
        for n, (text, path, _) in enumerate(pieces)
        if text
    ]
    if calls:
        messages.append(Message("assistant", tuple(calls), tuple(f".tool_calls[{n}]" for n in range(len(calls)))))
    raw_finish = pieces[0].reason if pieces else None
    return CallResponse(
        status=response.status,
        id=string(body.get("response_id")) or string(body.get("id")),
        messages=tuple(messages),
        finish=converse_finish(raw_finish, bool(calls)) if raw_finish or not truncated else None,
        raw_finish=raw_finish,
        usage=text_usage(body),
    )


def _cohere_call(raw: JsonObject) -> ToolCall | Unknown:
    name = string(raw.get("name"))
    return ToolCall(None, name, dumps(raw.get("parameters", {}))) if name else Unknown("tool_call", raw)


def vendor_events(read: AwsEvents) -> EventPayload:
    """Return the vendor's events; an exception becomes an event named `error`."""
    events: list[Event] = []
    unreadable: list[str] = []
    for kind, name, value, ms in read.events:
        if kind != "event":
            events.append(Event("error", error_value(name, value), ms))
            continue
        inner = _chunk_event(value) if name == "chunk" else value
        if isinstance(inner, NotJson):
            unreadable.append(dumps(value))
        else:
            events.append(Event(string(obj(inner).get("type")) or "", inner, ms))
    return EventPayload(events, unreadable=tuple(unreadable))


def vendor_of(payload: EventPayload) -> Vendor | None:
    """Return the format of the events; None for a text in pieces."""
    values = [event.value for event in payload.events if isinstance(event.value, dict) and event.name != "error"]
    if any(value.get("type") in _ANTHROPIC for value in values if isinstance(value.get("type"), str)):
        return "anthropic.messages"
    if any(not EVENTS.isdisjoint(value) for value in values):
        return "bedrock.converse"
    if any("delta" in obj(choice) for value in values for choice in items(value.get("choices"))):
        return "openai.chat"
    return None


def _chunk_event(value: Json) -> Json | NotJson:
    """Return the vendor's event inside a chunk."""
    data = obj(value).get("bytes")
    try:
        return load(base64.b64decode(data, validate=True)) if isinstance(data, str) else value
    except (binascii.Error, ValueError):
        return NotJson()


def _vendor_stream(response: Response, payload: EventPayload) -> CallResponse:
    """Join the vendor's events in its own format; the invocation metrics add missing usage."""
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
    return replace(_guarded(decoded, values), usage=_with_metrics(decoded.usage, metrics_usage(metrics)))


def _guarded(decoded: CallResponse, values: list[Json]) -> CallResponse:
    """Return the answer with the finish of a guardrail that replaced it; the vendor's own reason may be absent."""
    if decoded.finish not in (None, "stop") or not any(obj(v).get(_GUARDRAIL) == "INTERVENED" for v in values):
        return decoded
    return replace(decoded, finish="content_filter", raw_finish=decoded.raw_finish or "INTERVENED")


def _with_metrics(usage: Usage | None, metrics: Usage | None) -> Usage | None:
    if usage is None or metrics is None:
        return usage or metrics
    if usage.input is not None and usage.output is not None:
        return usage
    return replace(metrics, reasoning=usage.reasoning, raw={**usage.raw, METRICS: metrics.raw})


def _text_stream(response: Response, payload: EventPayload) -> CallResponse:
    assembler = assemble(TextAssembler(), payload.events)
    decoded = _text_answer(response, assembler.value(), truncated=not assembler.finished)
    return stream_response(decoded, response, payload, assembler, complete=assembler.finished)
