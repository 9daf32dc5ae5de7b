"""The wire format `bedrock.converse`: Converse, ConverseStream and CountTokens for all models on Bedrock.

The stream is an AWS event stream.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import ClassVar

from wiretape.model.call import CallKind, CallRequest, CallResponse
from wiretape.model.http import Exchange, Headers, Request, Response
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire import recognition
from wiretape.wire.base import Claim, Memo, Volatile
from wiretape.wire.bedrock.blocks import add_parts, request_message, system_part, tool_specs
from wiretape.wire.bedrock.converse_stream import EVENTS, ConverseAssembler, named_events
from wiretape.wire.bedrock.event_stream import is_event_stream, read_events
from wiretape.wire.bedrock.usage import converse_finish, converse_usage
from wiretape.wire.content import MessageBuilder
from wiretape.wire.decoding import (
    HttpFormat,
    RequestParts,
    assemble,
    calls_client_tools,
    count_response,
    json_error,
    read_response,
    response_error,
    served_tier,
    settings_of,
    stream_response,
    tools_of,
    unknown_message,
)
from wiretape.wire.lenient import body_json, is_empty, obj, string
from wiretape.wire.payload import EventPayload

MODEL_IN_PATH = r"\A(?:(?!/model/).)*+/model/(?P<model>.+)"  # after the first `/model/`
_TAIL = re.compile(rf"(?:{MODEL_IN_PATH})?/(?P<verb>converse|converse-stream)$")
_COUNT = re.compile(rf"{MODEL_IN_PATH}/count-tokens$")
_CARRIED = frozenset({"system", "messages", "toolConfig"})
_SHOWS_ANSWER = frozenset({"output", "stopReason", "usage"})
_ERROR_TYPES = {
    400: "ValidationException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    424: "ModelErrorException",
    429: "ThrottlingException",
    503: "ServiceUnavailableException",
}


class BedrockConverse(HttpFormat):
    name: ClassVar[str] = "bedrock.converse"
    volatile: ClassVar[Volatile] = Volatile(settings=frozenset({"requestMetadata"}))

    def claims(self, request: Request) -> Claim:
        if not recognition.is_post(request):
            return Claim.NO
        path = recognition.path_of(request.url)
        tail = _TAIL.search(path)
        body = body_json(request.body)
        if tail is not None:
            if isinstance(obj(body).get("messages"), list):
                return Claim.CERTAIN
            return Claim.PATH if tail["model"] and "jsonrpc" not in obj(body) else Claim.NO
        if _COUNT.search(path):
            return Claim.CERTAIN if "converse" in obj(obj(body).get("input")) else Claim.NO
        return Claim.BODY if recognition.shown_format(request) == self.name else Claim.NO

    def claims_response(self, exchange: Exchange) -> Claim:
        response = exchange.response
        if response is None or not recognition.is_post(exchange.request) or not is_event_stream(response):
            return super().claims_response(exchange)
        names = {event.name for event in read_events(response).events}
        return Claim.RESPONSE if names & EVENTS else Claim.NO

    def decode_request(self, request: Request, memo: Memo) -> CallRequest:
        decoded = super().decode_request(request, memo)
        path = recognition.path_of(request.url)
        tail = _TAIL.search(path)
        named = (tail or _COUNT.search(path) or {"model": None})["model"]
        stream = tail["verb"] == "converse-stream" if tail is not None else decoded.stream
        return replace(decoded, model=named or decoded.model, stream=stream)

    def _kind(self, exchange: Exchange, request: CallRequest) -> CallKind:
        return "token_count" if _COUNT.search(recognition.path_of(exchange.request.url)) else "inference"

    def _decode_body(self, body: JsonObject, request: Request, memo: Memo) -> CallRequest:
        if _COUNT.search(recognition.path_of(request.url)):
            return converse_request(obj(obj(body.get("input")).get("converse")), memo, "input.converse.")
        return converse_request(body, memo)

    def _decode_response(self, response: Response, complete: bool, kind: CallKind) -> CallResponse:
        if is_event_stream(response):
            read = read_events(response)
            decoded = decode_stream(response, EventPayload(named_events(read)))
            return replace(decoded, messages=decoded.messages + read.corrupt_messages())
        decode_json = count_response if kind == "token_count" else decode_answer
        return read_response(response, complete, decode_json, decode_stream)

    def error(self, status: int, message: str, code: str) -> tuple[Headers, bytes]:
        return bedrock_error(status, message)


def bedrock_error(status: int, message: str) -> tuple[Headers, bytes]:
    """Return an error whose type is in a header: without it an SDK shows only the status."""
    headers, body = json_error({"message": message})
    kind = _ERROR_TYPES.get(status, "InternalServerException" if status >= 500 else "ValidationException")
    return Headers([*headers.pairs(), ("x-amzn-errortype", kind)]), body


def converse_request(body: JsonObject, memo: Memo, prefix: str = "") -> CallRequest:
    """Decode a request. `prefix` is its place in the body, such as `input.converse.`."""
    parts = RequestParts()
    if not is_empty(system := body.get("system")):
        parts.add_value(f"{prefix}system", system, system_part, memo, "bedrock.system")
    messages = body.get("messages")
    if isinstance(messages, list):
        parts.add(f"{prefix}messages", memo.each("bedrock.message", messages, request_message))
    elif messages is not None:
        parts.add_scalar(f"{prefix}messages", unknown_message("messages", messages, "unknown"))
    config = obj(body.get("toolConfig"))
    settings = settings_of(body, _CARRIED)
    if rest := {k: v for k, v in config.items() if k != "tools" and v is not None}:
        settings = {**settings, "toolConfig": rest}
    return parts.request(
        string(body.get("model")) or string(body.get("modelId")),
        settings,
        tools=tools_of(config, tool_specs, memo, "bedrock.tools"),
        stream=body.get("stream") is True,
    )


def decode_answer(response: Response, value: Json, truncated: bool = False) -> CallResponse:
    """Decode an answer that is one JSON value. `truncated`: it is the start of a stream that ended early."""
    body = obj(value)
    error = response_error(response, value)
    message = obj(obj(body.get("output")).get("message"))
    role = string(message.get("role")) or "assistant"
    into = MessageBuilder()
    content = message.get("content")
    if isinstance(content, list):
        add_parts(into, content, ".content", role, truncated)
    elif content is not None:
        into.text(content, ".content")
    into.rest(message, ("role", "content"))
    messages = (into.build(role),) if content else ()
    if error is None and not truncated and _SHOWS_ANSWER.isdisjoint(body):
        messages = (unknown_message("response", value),)
    raw_finish = string(body.get("stopReason"))
    return CallResponse(
        status=response.status,
        messages=messages,
        finish=converse_finish(raw_finish, calls_client_tools(messages)) if raw_finish or not truncated else None,
        raw_finish=raw_finish,
        usage=converse_usage(body.get("usage")),
        error=error,
        service_tier=served_tier(body),
    )


def decode_stream(response: Response, payload: EventPayload) -> CallResponse:
    """Decode an answer that arrived as events, in any framing."""
    assembler = assemble(ConverseAssembler(), payload.events)
    decoded = decode_answer(response, assembler.value(), truncated=not assembler.finished)
    return stream_response(decoded, response, payload, assembler, complete=assembler.finished)
