"""The wire format `bedrock.converse`: Converse and ConverseStream, for every model that Bedrock serves.

The stream is an AWS event stream. Counting tokens of a Converse request is here, too.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import ClassVar

from wiretape.model.call import CallKind, CallRequest, CallResponse, Message, ModelCall, ToolCall
from wiretape.model.http import Exchange, Headers, Request, Response
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire import recognition
from wiretape.wire.answers import read_answer, response_claim, streamed
from wiretape.wire.base import Claim, Memo, Volatile
from wiretape.wire.bedrock.blocks import add_parts, request_message, system_part, tool_specs
from wiretape.wire.bedrock.eventstream import is_event_stream, read_events
from wiretape.wire.bedrock.next_request import ConverseGrower
from wiretape.wire.bedrock.stream import EVENTS, ConverseAssembly, named_events
from wiretape.wire.bedrock.usage import converse_finish, converse_usage
from wiretape.wire.call_frame import (
    came_whole,
    frame_call,
    json_error,
    kept_answer,
    settings_of,
    unknown_message,
    unreadable_request,
)
from wiretape.wire.content import MessageBuilder
from wiretape.wire.failures import call_error, has_error
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


class BedrockConverse:
    name: ClassVar[str] = "bedrock.converse"
    volatile: ClassVar[Volatile] = Volatile(settings=frozenset({"requestMetadata"}))
    grower: ClassVar[ConverseGrower] = ConverseGrower()

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
            return response_claim(exchange, self.name)
        names = {event.name for event in read_events(response).events}
        return Claim.RESPONSE if names & EVENTS else Claim.NO

    def decode(self, exchange: Exchange, memo: Memo) -> ModelCall:
        request = self.decode_request(exchange.request, memo)
        counts = bool(_COUNT.search(recognition.path_of(exchange.request.url)))
        kind: CallKind = "token_count" if counts else "inference"
        response = None
        if exchange.response is not None:
            response = decode_response(exchange.response, came_whole(exchange), counts)
        return frame_call(exchange, self.name, request, response, kind)

    def decode_request(self, request: Request, memo: Memo) -> CallRequest:
        body = body_json(request.body)
        path = recognition.path_of(request.url)
        tail, count = _TAIL.search(path), _COUNT.search(path)
        if not isinstance(body, dict):
            decoded = unreadable_request(request.body)
        elif count is not None:
            decoded = converse_request(obj(obj(body.get("input")).get("converse")), memo, "input.converse.")
        else:
            decoded = converse_request(body, memo)
        named = (tail or count or {"model": None})["model"]
        stream = tail["verb"] == "converse-stream" if tail is not None else decoded.stream
        return replace(decoded, model=named or decoded.model, stream=stream)

    def error(self, status: int, message: str, code: str) -> tuple[Headers, bytes]:
        return bedrock_error(status, message)


def bedrock_error(status: int, message: str) -> tuple[Headers, bytes]:
    """The type stands in a header: without it an SDK shows no more than the status."""
    headers, body = json_error({"message": message})
    kind = _ERROR_TYPES.get(status, "InternalServerException" if status >= 500 else "ValidationException")
    return Headers([*headers.pairs(), ("x-amzn-errortype", kind)]), body


def converse_request(body: JsonObject, memo: Memo, prefix: str = "") -> CallRequest:
    """`prefix`: where the request stands in the body, such as `input.converse.`."""
    messages: list[Message] = []
    segments: list[tuple[int, str]] = []
    scalars: set[str] = set()
    for name, kind, make in (
        ("system", "bedrock.system", system_part),
        ("messages", "bedrock.message", request_message),
    ):
        value = body.get(name)
        if value is None or (name == "system" and is_empty(value)):
            continue
        segments.append((len(messages), prefix + name))
        if isinstance(value, list):
            messages += [memo.of(kind, m, make) if isinstance(m, dict) else make(m) for m in value]
        else:
            scalars.add(prefix + name)
            messages.append(make(value) if name == "system" else unknown_message(name, value, "unknown"))
    config = obj(body.get("toolConfig"))
    tools = config.get("tools")
    settings = settings_of(body, _CARRIED)
    if rest := {k: v for k, v in config.items() if k != "tools" and v is not None}:
        settings = {**settings, "toolConfig": rest}
    return CallRequest(
        model=string(body.get("model")) or string(body.get("modelId")),
        messages=tuple(messages),
        tools=memo.of("bedrock.tools", tools, tool_specs) if isinstance(tools, list) else (),
        settings=settings,
        stream=body.get("stream") is True,
        segments=tuple(segments),
        scalars=frozenset(scalars),
    )


def decode_response(response: Response, whole: bool, counts: bool = False) -> CallResponse:
    """Whatever came as an answer. `whole`: the exchange ended as it should. `counts`: a token count was asked for."""
    if is_event_stream(response):
        read = read_events(response)
        decoded = decode_stream(response, EventPayload(named_events(read)))
        return replace(decoded, messages=decoded.messages + read.leftovers())
    return read_answer(response, whole, count_response if counts else decode_answer, decode_stream)


def count_response(response: Response, value: Json) -> CallResponse:
    """The count is the answer, not tokens that this call used."""
    if response.status >= 400 or has_error(value):
        return CallResponse(response.status, error=call_error(response.status, value, response.headers))
    return CallResponse(response.status, messages=(kept_answer("token_count", value),))


def decode_answer(response: Response, value: Json, cut: bool = False) -> CallResponse:
    """An answer that is one JSON value. `cut`: it is what came of a stream that ended early."""
    body = obj(value)
    failed = response.status >= 400 or has_error(value)
    error = call_error(response.status, value, response.headers) if failed else None
    message = obj(obj(body.get("output")).get("message"))
    role = string(message.get("role")) or "assistant"
    into = MessageBuilder()
    content = message.get("content")
    if isinstance(content, list):
        add_parts(into, content, ".content", role, cut)
    elif content is not None:
        into.text(content, ".content")
    into.rest(message, ("role", "content"))
    messages = (into.build(role),) if content else ()
    if not failed and not cut and _SHOWS_ANSWER.isdisjoint(body):
        messages = (unknown_message("response", value),)
    raw_finish = string(body.get("stopReason"))
    calls = [b for m in messages for b in m.blocks if isinstance(b, ToolCall) and b.kind != "server"]
    return CallResponse(
        status=response.status,
        messages=messages,
        finish=converse_finish(raw_finish, bool(calls)) if raw_finish or not cut else None,
        raw_finish=raw_finish,
        usage=converse_usage(body.get("usage")),
        error=error,
    )


def decode_stream(response: Response, payload: EventPayload) -> CallResponse:
    """An answer that came as events, whatever they were wrapped in."""
    assembly = ConverseAssembly()
    for event in payload.events:
        assembly.add(event)
    decoded = decode_answer(response, assembly.value(), cut=not assembly.finished)
    return streamed(decoded, response, payload, assembly, complete=assembly.finished)
