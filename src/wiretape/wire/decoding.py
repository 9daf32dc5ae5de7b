"""Decoding steps that all formats share: bids, unreadable bodies, streams, and the model call around a decoded body."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import islice
from typing import Any, ClassVar, Final, TypeAlias, TypeVar

from wiretape.model.call import (
    CallError,
    CallKind,
    CallRequest,
    CallResponse,
    Finish,
    Media,
    Message,
    ModelCall,
    Text,
    ToolCall,
    ToolSpec,
    Unknown,
    Usage,
)
from wiretape.model.http import Body, Ended, Exchange, Headers, Request, Response
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire import recognition
from wiretape.wire.base import Claim, Memo
from wiretape.wire.failures import call_error, has_error
from wiretape.wire.lenient import as_text, body_json, dumps, obj, raw_bytes, string
from wiretape.wire.payload import Event, EventPayload, JsonPayload, TextPayload, read_payload
from wiretape.wire.token_counts import without_final_output

TOOLS: Final = "tools"  # the list of tools, in every format with one element for each tool
_LINKING = frozenset(
    {"x-session-id", "x-parent-session-id", "x-deepseek-harness-session-id", "session-id", "thread-id"}
    | {"x-codex-parent-thread-id"}
    | {"x-codex-turn-metadata", "x-stainless-retry-count", "idempotency-key"}
)
_LONG = 20  # characters of a text that must not be lost
_NO_ANSWER = frozenset(
    {"id", "object", "model", "type", "event_type", "role", "created", "created_at", "createTime", "system_fingerprint"}
    | {"request_id", "response_id", "responseId", "generation_id", "item_id", "modelVersion", "traceId", "provider"}
    | {"usage", "usageMetadata", "timings", "trace", "metrics", "safetyRatings", "obfuscation", "p", "x_groq"}
    | {"prompt_filter_results", "content_filter_results", "promptFeedback", "context", "encrypted_content", "signature"}
    | {"thoughtSignature", "data", "container", "context_management", "diagnostics", "error", "stop_sequence"}
)
_REPEATED = frozenset(  # members of the request that a Responses object repeats
    {"instructions", "tools", "tool_choice", "input", "text", "metadata", "prompt", "reasoning", "user", "conversation"}
    | {"previous_response_id", "prompt_cache_key", "safety_identifier", "truncation", "incomplete_details"}
)
_TIER_HEADERS = ("x-gemini-service-tier", "x-amzn-bedrock-service-tier")
_COST_HEADER = "x-litellm-response-cost"


class StreamAssembler:
    """Base of the classes that join a stream's events: `value` is the answer in the shape of an unstreamed one."""

    __slots__ = ("error", "finished", "first_ms", "unknown_events")

    def __init__(self) -> None:
        self.error: Json = None  # the error event
        self.finished = False
        self.first_ms: int | None = None  # the time of the first content
        self.unknown_events: list[Json] = []  # events that the format does not define

    def add(self, event: Event) -> None:
        raise NotImplementedError

    def value(self) -> Json:
        raise NotImplementedError

    def note_content(self, ms: int | None) -> None:
        """Note the time of an event with content."""
        if self.first_ms is None:
            self.first_ms = ms


ToolSpecs: TypeAlias = tuple[ToolSpec, ...]
A = TypeVar("A", bound=StreamAssembler)


def assemble(assembler: A, events: Iterable[Event]) -> A:
    """Add all events to the assembler and return it."""
    for event in events:
        assembler.add(event)
    return assembler


class HttpFormat:
    """Base of the built-in formats: an exchange is one call, and the request's body is a JSON object."""

    name: ClassVar[str]

    def claims_response(self, exchange: Exchange) -> Claim:
        return response_claim(exchange, self.name)

    def decode(self, exchange: Exchange, memo: Memo) -> ModelCall:
        request = self.decode_request(exchange.request, memo)
        response, kind = None, self._kind(exchange, request)
        if exchange.response is not None:
            response = self._decode_response(exchange.response, is_complete(exchange), kind)
            response = with_lost_text(response, exchange.response)
        return build_call(exchange, self.name, request, response, kind)

    def decode_request(self, request: Request, memo: Memo) -> CallRequest:
        body = body_json(request.body)
        return self._decode_body(body, request, memo) if isinstance(body, dict) else unreadable_request(request.body)

    def _kind(self, exchange: Exchange, request: CallRequest) -> CallKind:
        return "inference"

    def _decode_body(self, body: JsonObject, request: Request, memo: Memo) -> CallRequest:
        raise NotImplementedError

    def _decode_response(self, response: Response, complete: bool, kind: CallKind) -> CallResponse:
        """Decode the response by its bytes. `complete`: the exchange ended normally."""
        raise NotImplementedError


def response_claim(exchange: Exchange, name: str, own_path: bool = False) -> Claim:
    """Bid by the response, for requests that no format recognizes. `own_path`: the path belongs to the format."""
    if exchange.response is None or not recognition.is_post(exchange.request):
        return Claim.NO
    if not own_path and recognition.is_other(exchange.request):
        return Claim.NO
    payload = read_payload(exchange.response)
    if isinstance(payload, JsonPayload):
        shown = recognition.response_format(payload.value)
    elif isinstance(payload, EventPayload):
        events = (event.value for event in payload.events if obj(event.value).get("type") != "ping")
        shown = next(filter(None, map(recognition.response_format, islice(events, 8))), None)
    else:
        shown = None
    return Claim.RESPONSE if shown == name else Claim.NO


def linking_headers(headers: Headers) -> tuple[tuple[str, str], ...]:
    """Return the request headers that identify the session, the agent or the attempt of a call."""
    return tuple([(name, headers[name]) for name in headers if name in _LINKING or name.startswith("x-claude-code-")])


def build_call(
    exchange: Exchange,
    name: str,
    request: CallRequest,
    response: CallResponse | None,
    kind: CallKind = "inference",
) -> ModelCall:
    """Return the model call of an exchange, not numbered yet."""
    if response is not None and exchange.response is not None:
        response = _with_billing(response, exchange.response.headers)
    return ModelCall(
        number=0,
        exchange=exchange.number,
        format=name,
        request=request,
        response=response,
        at=exchange.at,
        ended_at=exchange.ended_at,
        ended=exchange.ended,
        kind=kind,
        dialect=recognition.host_dialect(exchange.request.url),
        url=exchange.request.url,
        headers=linking_headers(exchange.request.headers),
    )


def served_tier(body: JsonObject) -> str | None:
    """Return the service tier that an answer or its usage names."""
    for name in ("service_tier", "serviceTier", "trafficType", "traffic_type"):
        tier = body.get(name)
        found = string(tier.get("type") if isinstance(tier, dict) else tier)
        if found:
            return found
    return None


def _with_billing(response: CallResponse, headers: Headers) -> CallResponse:
    """Return the response with the service tier in its usage or headers, and the cost in its headers."""
    tier = response.service_tier or (served_tier(response.usage.raw) if response.usage is not None else None)
    tier = tier or next((headers[name] for name in _TIER_HEADERS if name in headers), None)
    cost = _cost(headers.get(_COST_HEADER))
    if tier == response.service_tier and cost is None:
        return response
    return replace(response, service_tier=tier, cost=cost)


def _cost(text: str | None) -> float | None:
    try:
        cost = float(text) if text else -1.0
    except ValueError:
        return None
    return cost if 0 <= cost < math.inf else None


def is_complete(exchange: Exchange) -> bool:
    """Return whether the exchange ended normally; False while it is open."""
    return exchange.ended is Ended.COMPLETE


def unreadable_request(body: Body | None) -> CallRequest:
    """Return a request whose body is not a JSON object: one unknown block."""
    data = raw_bytes(body)
    if not data:
        return CallRequest(None, ())
    return CallRequest(
        None,
        (Message("unknown", (Unknown("body", as_text(data)),), ("",)),),
        segments=((0, ""),),
        scalars=frozenset({""}),
    )


def text_message(role: str, text: str) -> Message:
    """Return a message of one text, which is the whole value."""
    return Message(role, (Text(text),), ("",))


def image_message(image: Json) -> Message:
    """Return a message of one image, which is the whole value."""
    return Message("user", (Media("image", image if isinstance(image, dict) else {"image": image}),), ("",))


def unknown_message(kind: str, raw: object, role: str = "assistant") -> Message:
    """Return a message of one unknown block."""
    return Message(role, (Unknown(kind, raw),), ("",))


class RequestParts:
    """Collects a request's messages, and the members of the body (segments) that hold them."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._segments: list[tuple[int, str]] = []
        self._scalars: set[str] = set()

    def add(self, name: str, messages: Iterable[Message]) -> None:
        """Add the messages of the list at `name`."""
        self._segments.append((len(self._messages), name))
        self._messages += messages

    def add_scalar(self, name: str, message: Message) -> None:
        """Add the message that is the value at `name`."""
        self._scalars.add(name)
        self.add(name, (message,))

    def add_value(self, name: str, value: Json, make: Callable[[Any], Message], memo: Memo, kind: str) -> None:
        """Add the value at `name`, which is a list of messages or one message."""
        if isinstance(value, list):
            self.add(name, memo.each(kind, value, make))
        else:
            self.add_scalar(name, make(value))

    def request(
        self,
        model: str | None,
        settings: JsonObject,
        *,
        tools: ToolSpecs = (),
        stream: bool = False,
        previous_response_id: str | None = None,
    ) -> CallRequest:
        """Return the decoded request."""
        return CallRequest(
            model=model,
            messages=tuple(self._messages),
            tools=tools,
            settings=settings,
            stream=stream,
            segments=tuple(self._segments),
            scalars=frozenset(self._scalars),
            previous_response_id=previous_response_id,
        )


def listed_messages(body: JsonObject, make: Callable[[Any], Message], memo: Memo, kind: str) -> tuple[Message, ...]:
    """Decode the list `messages` of a body; another value becomes one unknown message."""
    raw = body.get("messages")
    if isinstance(raw, list):
        return memo.each(kind, raw, make)
    return () if raw is None else (unknown_message("messages", raw, "unknown"),)


def tools_of(
    body: JsonObject, make: Callable[[Any], tuple[ToolSpec, ...]], memo: Memo, kind: str
) -> tuple[ToolSpec, ...]:
    """Decode the list `tools` of a body."""
    tools = body.get(TOOLS)
    return memo.of(kind, tools, make) if isinstance(tools, list) else ()


def tools_by_name(body: Json, call: CallRequest | None) -> dict[str, Json]:
    """Map tool names to the elements of the body's list, in order; {} without such a list, or if a name repeats."""
    tools = body.get(TOOLS) if isinstance(body, dict) else None
    if call is None or not isinstance(tools, list) or len(tools) != len(call.tools):
        return {}
    named = {spec.name: tool for spec, tool in zip(call.tools, tools, strict=True)}
    return named if len(named) == len(tools) else {}


def without_tools(body: Json) -> Json:
    """Return a body without its list of tools."""
    return {key: value for key, value in body.items() if key != TOOLS} if isinstance(body, dict) else body


def settings_of(body: JsonObject, carried: frozenset[str]) -> JsonObject:
    """Return the members outside the conversation, without nulls."""
    return {k: v for k, v in body.items() if k not in carried and v is not None}


def side_answer(kind: str, value: Json) -> Message:
    """Return the answer of a side call: one value, kept whole (a vector, scores, a count)."""
    if isinstance(value, dict) and value:
        return Message("assistant", (Media(kind, value),), ("",))
    return unknown_message(kind, value)


def response_error(response: Response, value: Json) -> CallError | None:
    """Return the error of a failed response, or None."""
    failed = response.status >= 400 or has_error(value)
    return call_error(response.status, value, response.headers) if failed else None


def calls_client_tools(messages: Iterable[Message]) -> bool:
    """Return whether the messages call a tool that the client runs."""
    return any(isinstance(block, ToolCall) and block.kind != "server" for m in messages for block in m.blocks)


def with_tool_calls(finish: Finish | None, has_calls: bool) -> Finish | None:
    """Return `tool_calls` for a stop, or for no finish, if the answer has tool calls."""
    return "tool_calls" if has_calls and finish in (None, "stop") else finish


def known_usage(usage: Usage) -> Usage | None:
    """Return the usage, or None if it has no count."""
    return usage if usage != Usage() else None


def read_response(
    response: Response,
    complete: bool,
    decode_json: Callable[[Response, Json], CallResponse],
    decode_stream: Callable[[Response, EventPayload], CallResponse],
) -> CallResponse:
    """Decode a response as JSON, events or text, as its bytes show. `complete`: the exchange ended normally."""
    payload = read_payload(response)
    match payload:
        case JsonPayload(value=value):
            return decode_json(response, value)
        case EventPayload():
            return decode_stream(response, payload)
        case TextPayload(text=text):
            return text_response(response, text, complete)


def stream_response(
    decoded: CallResponse, response: Response, payload: EventPayload, assembler: StreamAssembler, complete: bool
) -> CallResponse:
    """Add the facts of a stream to its decoded answer: times, an error event, leftover events."""
    error = decoded.error
    if assembler.error is not None:
        error = call_error(response.status, assembler.error, response.headers, "mid_stream")
    return replace(
        decoded,
        usage=decoded.usage if complete else without_final_output(decoded.usage),
        messages=decoded.messages + leftover_events(payload, assembler.unknown_events),
        error=error,
        complete=complete,
        streamed=True,
        first_token_at=first_token_time(response, assembler.first_ms),
    )


def with_lost_text(decoded: CallResponse, response: Response) -> CallResponse:
    """Return the response; if it has text and no block was decoded, its values become unknown blocks."""
    if decoded.error is not None or any(message.blocks for message in decoded.messages):
        return decoded
    payload = read_payload(response)
    values = [payload.value] if isinstance(payload, JsonPayload) else []
    if isinstance(payload, EventPayload):
        values = [event.value for event in payload.events]
    blocks = tuple(Unknown("response", value) for value in values if has_text(value))
    if not blocks:
        return decoded
    message = Message("assistant", blocks, ("",) * len(blocks))
    return replace(decoded, messages=(*decoded.messages, message))


def has_text(value: Json, depth: int = 12) -> bool:
    """Return whether a value has a long string outside ids, settings and other members that are no answer."""
    if isinstance(value, str):
        return len(value) >= _LONG
    if depth and isinstance(value, list):
        return any(has_text(part, depth - 1) for part in value)
    if not depth or not isinstance(value, dict):
        return False
    ignored = _NO_ANSWER | _REPEATED if value.get("object") == "response" else _NO_ANSWER
    return any(has_text(part, depth - 1) for name, part in value.items() if name not in ignored)


def text_response(response: Response, text: str, complete: bool) -> CallResponse:
    """Decode a body that is neither JSON nor events: an error page, truncated JSON, or nothing.

    JSON that breaks off is not complete, even if the connection ended normally.
    """
    failed = response.status >= 400
    error = call_error(response.status, None, response.headers, text=text) if failed else None
    messages = (unknown_message("text", text),) if text.strip() and not failed else ()
    complete = complete and (failed or not text.lstrip().startswith(("{", "[")))
    return CallResponse(response.status, messages=messages, error=error, complete=complete)


def count_response(response: Response, value: Json) -> CallResponse:
    """Decode the answer to a token count: the counted tokens are the answer, not the usage of this call."""
    if error := response_error(response, value):
        return CallResponse(response.status, error=error)
    return CallResponse(response.status, messages=(side_answer("token_count", value),))


def leftover_events(payload: EventPayload, unknown_events: list[Json]) -> tuple[Message, ...]:
    """Return the events that the format does not define, and data that is not JSON, as one message.

    Its role is `system`: the model did not write it, and later requests do not repeat it.
    """
    blocks = [Unknown("event", value) for value in unknown_events]
    blocks += [Unknown("unreadable_event", text) for text in payload.unreadable]
    return (Message("system", tuple(blocks), ("",) * len(blocks)),) if blocks else ()


def first_token_time(response: Response, ms: int | None) -> int | None:
    return None if ms is None else response.headers_at + ms


def json_error(body: JsonObject) -> tuple[Headers, bytes]:
    """Return headers and body of an error response."""
    return Headers([("content-type", "application/json")]), dumps(body).encode()
