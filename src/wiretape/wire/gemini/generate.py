"""The wire format `gemini.generate`: generateContent and streamGenerateContent, at Google and compatible servers.

The path names the model and whether to stream. Code Assist wraps request and answer in another object.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import ClassVar

from wiretape.model.call import CallKind, CallRequest, CallResponse, Message
from wiretape.model.http import Exchange, Headers, Request, Response
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire import recognition
from wiretape.wire.base import Claim, Memo, Volatile
from wiretape.wire.content import MessageBuilder
from wiretape.wire.decoding import (
    HttpFormat,
    RequestParts,
    assemble,
    calls_client_tools,
    count_response,
    first_token_time,
    json_error,
    leftover_events,
    response_error,
    settings_of,
    text_response,
    tools_of,
    unknown_message,
)
from wiretape.wire.failures import Phase, call_error
from wiretape.wire.gemini.generate_stream import GenerateAssembler
from wiretape.wire.gemini.parts import ROLES, add_content, refusal_message, request_content, system_content, tool_specs
from wiretape.wire.gemini.payload import Chunks, enum, get, read_chunks, spelled, unwrapped
from wiretape.wire.gemini.usage import generate_finish, generate_usage
from wiretape.wire.lenient import body_json, is_empty, items, number, obj, string
from wiretape.wire.payload import JsonPayload, TextPayload
from wiretape.wire.token_counts import without_final_output

_TAIL = re.compile(r"(?<![^/:])([^/:]++):(generateContent|streamGenerateContent|countTokens|computeTokens)$")
_WRAPPERS = ("request", "generateContentRequest", "generate_content_request")
_BARE_METHODS = ("v1internal",)  # methods without a model before the colon
_CARRIED = frozenset({"model", "contents", "systemInstruction", "system_instruction", "tools"})
_SHOWS_ANSWER = ("candidates", "promptFeedback", "usageMetadata")
_QUIET = frozenset(
    {"content", "index", "finishReason", "finish_reason", "tokenCount", "token_count", "avgLogprobs", "avg_logprobs"}
    | {"logprobsResult", "logprobs_result"}
)
_STATUS_NAMES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


class GeminiGenerate(HttpFormat):
    name: ClassVar[str] = "gemini.generate"
    volatile: ClassVar[Volatile] = Volatile(
        settings=frozenset({"labels", "project", "user_prompt_id", "session_id"}),
        nested=frozenset({("request", "session_id"), ("request", "labels")}),
    )

    def claims(self, request: Request) -> Claim:
        if not recognition.is_post(request):
            return Claim.NO
        if _TAIL.search(recognition.path_of(request.url)):
            return _path_claim(body_json(request.body))
        return Claim.BODY if recognition.shown_format(request) == self.name else Claim.NO

    def decode_request(self, request: Request, memo: Memo) -> CallRequest:
        decoded = super().decode_request(request, memo)
        tail = _TAIL.search(recognition.path_of(request.url))
        if tail is None:
            return decoded
        named = None if tail[1] in _BARE_METHODS else tail[1]
        return replace(decoded, model=named or decoded.model, stream=tail[2] == "streamGenerateContent")

    def _kind(self, exchange: Exchange, request: CallRequest) -> CallKind:
        counts = recognition.path_of(exchange.request.url).endswith((":countTokens", ":computeTokens"))
        return "token_count" if counts else "inference"

    def _decode_body(self, body: JsonObject, request: Request, memo: Memo) -> CallRequest:
        return generate_request(body, memo)

    def _decode_response(self, response: Response, complete: bool, kind: CallKind) -> CallResponse:
        read = read_chunks(response)
        match read:
            case JsonPayload(value=value) if kind == "token_count":
                return count_response(response, value)
            case JsonPayload(value=value):
                return _plain(response, unwrapped(value), value)
            case Chunks():
                return _stream(response, read)
            case TextPayload(text=text):
                return text_response(response, text, complete)

    def error(self, status: int, message: str, code: str) -> tuple[Headers, bytes]:
        return gemini_error(status, message, code)


def gemini_error(status: int, message: str, code: str) -> tuple[Headers, bytes]:
    name = _STATUS_NAMES.get(status, "INTERNAL" if status >= 500 else "FAILED_PRECONDITION")
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": code}
    return json_error({"error": {"code": status, "message": message, "status": name, "details": [info]}})


def _path_claim(body: Json) -> Claim:
    if not isinstance(body, dict):
        return Claim.PATH
    return Claim.NO if "jsonrpc" in body else Claim.CERTAIN if "contents" in _inner(body)[1] else Claim.PATH


def _inner(body: JsonObject) -> tuple[str, JsonObject]:
    """Return the wrapper member ("" without a wrapper) and the request inside it."""
    if "contents" not in body:
        for name in _WRAPPERS:
            if isinstance(body.get(name), dict):
                return name, body[name]
    return "", body


def generate_request(body: JsonObject, memo: Memo) -> CallRequest:
    wrapper, inner = _inner(body)
    prefix = f"{wrapper}." if wrapper else ""
    parts = RequestParts()
    key = spelled(inner, "systemInstruction")
    if not is_empty(system := inner.get(key)):
        make = system_content
        message = memo.of("gemini.system", system, make) if isinstance(system, dict) else make(system)
        parts.add_scalar(prefix + key, message)
    if (contents := inner.get("contents")) is not None:
        parts.add_value(f"{prefix}contents", contents, request_content, memo, "gemini.content")
    settings = settings_of(inner, _CARRIED)
    if wrapper:
        outer = settings_of(body, frozenset({"model", wrapper}))
        settings = {**outer, wrapper: settings} if settings else outer
    model = _bare_model(string(body.get("model")) or string(inner.get("model")))
    return parts.request(model, settings, tools=tools_of(inner, tool_specs, memo, "gemini.tools"))


def _bare_model(name: str | None) -> str | None:
    return name.rpartition("/")[2] or None if name else None


def _plain(response: Response, body: JsonObject, value: Json, truncated: bool = False) -> CallResponse:
    """Decode an answer; `body` is `value` without its wrapper. `truncated`: its stream ended early."""
    error = response_error(response, body)
    candidates = [c for c in items(body.get("candidates")) if isinstance(c, dict)]
    messages = tuple(_candidate(candidate, n) for n, candidate in enumerate(candidates))
    raw_finish = enum(get(candidates[0], "finishReason")) if candidates else None
    has_calls = calls_client_tools(messages[:1])
    ended = None if truncated and raw_finish is None else generate_finish(raw_finish, has_calls)
    feedback = obj(get(body, "promptFeedback"))
    blocked = enum(get(feedback, "blockReason"))
    if blocked is not None and not candidates:
        raw_finish, ended = blocked, "content_filter"
        messages = (_blocked(feedback),)
    elif ended == "content_filter" and not any(m.blocks for m in messages):
        key = spelled(candidates[0], "finishMessage")
        messages = (refusal_message(candidates[0].get(key), f".{key}", messages[0].extra),)
    elif error is None and not truncated and not any(get(body, name) is not None for name in _SHOWS_ANSWER):
        messages = (unknown_message("response", value),)
    return CallResponse(
        status=response.status,
        model=string(get(body, "modelVersion")),
        id=string(get(body, "responseId")),
        messages=tuple(m for m in messages if m.blocks or m.extra),
        finish=ended,
        raw_finish=raw_finish,
        usage=generate_usage(get(body, "usageMetadata")),
        error=error,
    )


def _blocked(feedback: JsonObject) -> Message:
    key = spelled(feedback, "blockReasonMessage")
    return refusal_message(feedback.get(key), f".{key}", (("promptFeedback", feedback),))


def _candidate(raw: JsonObject, position: int) -> Message:
    into = MessageBuilder()
    content = raw.get("content")
    role = "assistant"
    if isinstance(content, dict):
        add_content(into, content)
        role = ROLES.get(string(content.get("role")) or "model", "assistant")
    elif isinstance(content, str):
        into.text(content, "")
    elif not is_empty(content):
        return unknown_message("content", content)
    index = number(raw.get("index"))
    if index or (index is None and position):
        into.extra("choice", position if index is None else index)
    into.rest(raw, _QUIET)
    return into.build(role)


def _stream(response: Response, chunks: Chunks) -> CallResponse:
    assembler = assemble(GenerateAssembler(), chunks.payload.events)
    finished = assembler.finished if chunks.ended is None else chunks.ended
    failed = response.status >= 400
    decoded = _plain(response, assembler.value(), None, truncated=not finished)
    error = decoded.error
    if assembler.error is not None:
        phase: Phase = "before_stream" if failed else "mid_stream"
        error = call_error(response.status, assembler.error, response.headers, phase)
        finished = failed
    return replace(
        decoded,
        usage=decoded.usage if finished else without_final_output(decoded.usage),
        messages=tuple(decoded.messages) + leftover_events(chunks.payload, assembler.unknown_events),
        error=error,
        complete=finished,
        streamed=not failed,
        first_token_at=first_token_time(response, assembler.first_ms),
    )
