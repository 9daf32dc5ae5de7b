"""The wire format `cohere.chat_v1`: version 1 of Cohere's chat API, with a `message` and a `chat_history`."""

from __future__ import annotations

from typing import ClassVar

from wiretape.model.call import (
    CallKind,
    CallRequest,
    CallResponse,
    Message,
    ToolCall,
    ToolResult,
    ToolSpec,
    Unknown,
)
from wiretape.model.http import Exchange, Headers, Request, Response
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire import recognition
from wiretape.wire.base import Claim, Memo, Volatile
from wiretape.wire.cohere.chat import FINISH, cohere_usage
from wiretape.wire.content import MessageBuilder, result_text
from wiretape.wire.decoding import (
    HttpFormat,
    RequestParts,
    StreamAssembler,
    assemble,
    json_error,
    read_response,
    response_error,
    settings_of,
    stream_response,
    text_message,
    tools_of,
    unknown_message,
    with_tool_calls,
)
from wiretape.wire.failures import has_error
from wiretape.wire.lenient import body_json, dumps, items, obj, string
from wiretape.wire.payload import Event, EventPayload, JsonPayload, read_payload

_CARRIED = frozenset({"model", "preamble", "chat_history", "message", "tool_results", "tools"})
_OWN = frozenset({"preamble", "chat_history", "tool_results", "connectors", "prompt_truncation", "citation_quality"})
_MODELS = ("command", "c4ai-")
_ROLES = {"USER": "user", "CHATBOT": "assistant", "SYSTEM": "system", "TOOL": "tool"}
_QUIET = frozenset({"response_id", "generation_id", "text", "tool_calls", "chat_history", "finish_reason", "meta"})
_EVENTS = frozenset({"stream-start", "text-generation", "tool-calls-generation", "tool-calls-chunk", "stream-end"})


class CohereChatV1(HttpFormat):
    name: ClassVar[str] = "cohere.chat_v1"
    volatile: ClassVar[Volatile] = Volatile(settings=frozenset({"conversation_id"}))

    def claims(self, request: Request) -> Claim:
        """Bid for Cohere's members or models: programs of any kind have a `/v1/chat` with a `message`."""
        body = obj(body_json(request.body))
        if not _has_path(request) or not isinstance(body.get("message"), str) or "messages" in body:
            return Claim.NO
        is_cohere = bool(_OWN & body.keys()) or str(body.get("model")).startswith(_MODELS)
        return Claim.CERTAIN if is_cohere else Claim.NO

    def claims_response(self, exchange: Exchange) -> Claim:
        if exchange.response is None or not _has_path(exchange.request):
            return Claim.NO
        payload = read_payload(exchange.response)
        if isinstance(payload, JsonPayload):
            return Claim.RESPONSE if {"generation_id", "text"} <= obj(payload.value).keys() else Claim.NO
        shown = isinstance(payload, EventPayload) and any(_kind(event.value) in _EVENTS for event in payload.events[:3])
        return Claim.RESPONSE if shown else Claim.NO

    def _decode_body(self, body: JsonObject, request: Request, memo: Memo) -> CallRequest:
        parts = RequestParts()
        if string(body.get("preamble")):
            parts.add_scalar("preamble", text_message("system", body["preamble"]))
        if isinstance(body.get("chat_history"), list):
            parts.add("chat_history", memo.each("cohere.chat_v1", body["chat_history"], _turn))
        if string(body.get("message")):
            parts.add_scalar("message", text_message("user", body["message"]))
        if isinstance(body.get("tool_results"), list):
            parts.add("tool_results", [_result(entry) for entry in body["tool_results"]])
        return parts.request(
            string(body.get("model")),
            settings_of(body, _CARRIED),
            tools=tools_of(body, _tools, memo, "cohere.chat_v1.tools"),
            stream=body.get("stream") is True,
        )

    def _decode_response(self, response: Response, complete: bool, kind: CallKind) -> CallResponse:
        return read_response(response, complete, _answer, _stream)

    def error(self, status: int, message: str, code: str) -> tuple[Headers, bytes]:
        return json_error({"message": message, "code": code})


def _has_path(request: Request) -> bool:
    return recognition.is_post(request) and recognition.path_of(request.url).endswith("/v1/chat")


def _kind(value: Json) -> str:
    return string(obj(value).get("event_type")) or ""


def _turn(raw: Json) -> Message:
    """Decode one entry of `chat_history`."""
    turn = obj(raw)
    role = _ROLES.get(str(turn.get("role")).upper())
    if role is None:
        return unknown_message("chat_history", raw, "unknown")
    into = MessageBuilder()
    into.text(turn.get("message"), ".message")
    _add_calls(into, turn)
    for n, result in enumerate(items(turn.get("tool_results"))):
        into.add(_result_block(result), f".tool_results[{n}].outputs")
    into.rest(turn, ("role", "message", "tool_calls", "tool_results"))
    return into.build(role)


def _result(raw: Json) -> Message:
    return Message("tool", (_result_block(raw),), (".outputs",))


def _result_block(raw: Json) -> ToolResult:
    """Decode a tool's result. This API has no ids of calls: the name and the order pair them."""
    name = string(obj(obj(raw).get("call")).get("name"))
    outputs = [dumps(output) if isinstance(output, dict) else output for output in items(obj(raw).get("outputs"))]
    text, parts, _ = result_text(outputs, "")
    return ToolResult(None, name, text, parts=parts)


def _add_calls(into: MessageBuilder, holder: JsonObject) -> None:
    for n, call in enumerate(items(holder.get("tool_calls"))):
        name = string(obj(call).get("name"))
        arguments = dumps(obj(call).get("parameters", {}))
        into.add(
            ToolCall(None, name, arguments) if name else Unknown("tool_call", call), f".tool_calls[{n}].parameters"
        )


def _tools(raw: Json) -> tuple[ToolSpec, ...]:
    return tuple(
        ToolSpec(
            string(obj(tool).get("name")) or "",
            string(obj(tool).get("description")),
            obj(tool).get("parameter_definitions"),
            "function",
            obj(tool),
        )
        for tool in items(raw)
    )


def _answer(response: Response, value: Json, truncated: bool = False) -> CallResponse:
    body = obj(value)
    error = response_error(response, value)
    into = MessageBuilder()
    into.text(body.get("text"), ".text")
    _add_calls(into, body)
    if error is None:
        into.rest(body, _QUIET)
    message = into.build("assistant")
    raw_finish = string(body.get("finish_reason"))
    has_calls = any(isinstance(block, ToolCall) for block in message.blocks)
    return CallResponse(
        status=response.status,
        id=string(body.get("response_id")) or string(body.get("generation_id")),
        messages=(message,) if message.blocks or message.extra else (),
        finish=with_tool_calls(FINISH.get(raw_finish or ""), has_calls and not truncated),
        raw_finish=raw_finish,
        usage=cohere_usage(body.get("meta")),
        error=error,
    )


def _stream(response: Response, payload: EventPayload) -> CallResponse:
    assembler = assemble(ChatV1Assembler(), payload.events)
    decoded = _answer(response, assembler.value(), truncated=not assembler.finished)
    return stream_response(decoded, response, payload, assembler, complete=assembler.finished)


class ChatV1Assembler(StreamAssembler):
    """Joins the events of one stream. The last one has the whole answer."""

    __slots__ = ("_end", "_members", "_pieces")

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[str] = []
        self._members: JsonObject = {}
        self._end: JsonObject = {}

    def add(self, event: Event) -> None:
        value, kind = obj(event.value), _kind(event.value)
        if kind == "text-generation" and isinstance(value.get("text"), str):
            self._pieces.append(value["text"])
            self.note_content(event.ms)
        elif kind == "stream-start":
            self._members["generation_id"] = value.get("generation_id")
        elif kind == "tool-calls-generation":
            self._members["tool_calls"] = items(value.get("tool_calls"))
            self.note_content(event.ms)
        elif kind == "stream-end":
            reason = {"finish_reason": value["finish_reason"]} if value.get("finish_reason") else {}
            self._end = {**obj(value.get("response")), **reason}
            self.finished = True
            if string(value.get("error")):
                self.error = {"message": value["error"]}
        elif has_error(value) or (not kind and string(value.get("message"))):
            self.error = event.value
        elif kind not in ("tool-calls-chunk", "citation-generation", "search-queries-generation", "search-results"):
            self.unknown_events.append(event.value)

    def value(self) -> JsonObject:
        answer = {"text": "".join(self._pieces), **self._members}
        return {**answer, **{name: value for name, value in self._end.items() if value not in (None, "", [])}}
