"""The Responses API over a WebSocket: assigns the messages of a connection to model calls.

A call is a `response.create` message and the events up to its terminal one. Calls with the same `stream_id` share a
lane and are answered in order; without ids the whole connection is one lane. `SocketSplitter` takes one message at a
time and keeps only unfinished calls, so that an open connection can be followed.
"""

from __future__ import annotations

from base64 import b64encode
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

import orjson

from wiretape.model.call import CallResponse, Message, ModelCall, Unknown
from wiretape.model.http import BytesBody, Ended, Exchange, Headers, Response, StreamBody, WsMessage
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.base import Claim, Memo
from wiretape.wire.decoding import build_call, linking_headers
from wiretape.wire.lenient import body_json, obj, raw_bytes, string
from wiretape.wire.openai.responses import OpenAIResponses, call_kind, from_events, responses_request
from wiretape.wire.openai.responses_items import input_item
from wiretape.wire.openai.responses_stream import TERMINAL
from wiretape.wire.payload import Event, EventPayload
from wiretape.wire.recognition import path_of

NAMES_BEFORE: Final = "previous_response_id"  # names the response whose history is continued
_LANE: Final = "stream_id"
_LOOK_AT = 8  # messages inspected for a bid
_MOST_FOLLOWED = 4 * 1024 * 1024  # bytes of one answer's events, if the connection is followed
_MOST_IDLE = 64  # remembered lanes without an open call
_REALTIME = ("session.", "conversation.", "input_audio_buffer.")  # another protocol that has `response.create` as well
_NAMED_IN_METADATA = {"thread_id": "thread-id", "session_id": "session-id"}


@dataclass(slots=True, eq=False)
class ConnectionCall:
    """One call of a connection. `number` counts the calls from 1, by start."""

    number: int
    at: int
    body: JsonObject
    lane: str | None
    queued: list[Json] = field(default_factory=list)  # steering input that the server puts before this call's own
    steers: list[Json] = field(default_factory=list)  # steering input for the response after this one
    response_id: str | None = None
    frames: list[int] = field(default_factory=list)  # numbers of its messages, from 1
    events: list[Event] = field(default_factory=list)
    kept: list[Unknown] = field(default_factory=list)  # binary messages and text that is not JSON
    size: int = 0
    ended_at: int | None = None


class _Lane:
    """Calls that are answered in order."""

    __slots__ = ("last", "open")

    def __init__(self) -> None:
        self.open: deque[ConnectionCall] = deque()
        self.last: ConnectionCall | None = None  # the last finished call


class SocketSplitter:
    """Splits a connection's messages into calls; a call is returned with its terminal event.

    `most` limits the bytes of one call's events. Beyond it deltas are dropped, because the terminal event repeats them.
    """

    def __init__(self, most: int | None = None) -> None:
        self._lanes: dict[str | None, _Lane] = {}
        self._most = most
        self._messages = 0
        self._calls = 0

    def feed(self, message: WsMessage) -> ConnectionCall | None:
        """Return the call that this message completes, or None."""
        self._messages += 1
        body = message.body
        if isinstance(body, BytesBody) or (isinstance(body, StreamBody) and body.binary):
            self._keep(message, Unknown("binary_message", b64encode(raw_bytes(body)).decode()))
            return None
        value = body_json(body)
        if not isinstance(value, dict):
            self._keep(message, Unknown("unreadable_message", raw_bytes(body).decode("utf-8", "replace")))
            return None
        kind = value.get("type")
        kind = kind if isinstance(kind, str) else ""
        if message.sender == "client":
            self._on_client_message(kind, value, message)
            return None
        return self._on_server_event(kind, value, message)

    def open_calls(self) -> list[ConnectionCall]:
        """Return the calls without a terminal event, by start."""
        return sorted((call for lane in self._lanes.values() for call in lane.open), key=lambda call: call.number)

    # -- client messages -------------------------------------------------------------------------------------------

    def _on_client_message(self, kind: str, value: JsonObject, message: WsMessage) -> None:
        if kind == "response.create":
            self._create(value, message.at)
        elif kind == "response.steer":
            target = self._by_response(string(value.get("previous_response_id")))
            if target is not None:
                target.steers += _listed(value.get("input"))
                self._mark(target)
        elif kind != "response.processed":
            self._keep(message, Unknown("client_message", value))

    def _create(self, value: JsonObject, at: int) -> None:
        wrapped = value.get("response")
        if isinstance(wrapped, dict):  # an older protocol wraps the body
            value = {**{k: v for k, v in value.items() if k != "response"}, **wrapped}
        call = self._begin(value, at, string(value.get("stream_id")))
        before = self._by_response(string(value.get("previous_response_id")))
        if before is not None:
            call.queued, before.steers = before.steers, []
        self._mark(call)

    def _begin(self, body: JsonObject, at: int, name: str | None) -> ConnectionCall:
        self._calls += 1
        call = ConnectionCall(self._calls, at, body, name)
        if name not in self._lanes:
            self._forget_idle()
            self._lanes[name] = _Lane()
        self._lanes[name].open.append(call)
        return call

    def _forget_idle(self) -> None:
        idle = [name for name, lane in self._lanes.items() if not lane.open]
        for name in idle[: max(0, len(idle) - _MOST_IDLE)]:
            del self._lanes[name]

    # -- server messages -------------------------------------------------------------------------------------------

    def _on_server_event(self, kind: str, value: JsonObject, message: WsMessage) -> ConnectionCall | None:
        response_id = string(obj(value.get("response")).get("id"))
        call = self._open_call(string(value.get("stream_id")), response_id)
        if call is None and kind == "response.created":
            call = self._start_by_server(value, message.at)
        if kind == "response.steer.failed":
            self._steer_failed(obj(value.get("steer")))
        if call is None:
            return None
        self._mark(call)
        call.response_id = call.response_id or response_id
        ends = kind in TERMINAL or kind == "error"
        if ends or self._has_room(call, message):
            call.events.append(Event("", value, message.at - call.at))
        return self._end(call, message.at) if ends else None

    def _has_room(self, call: ConnectionCall, message: WsMessage) -> bool:
        if self._most is None:
            return True
        call.size += len(raw_bytes(message.body))
        return call.size <= self._most

    def _open_call(self, name: str | None, response_id: str | None) -> ConnectionCall | None:
        """Return the call of an event: by its response's id, by its lane, or the call of the only active lane."""
        calls = [lane.open[0] for lane in self._lanes.values() if lane.open]
        if response_id is not None:
            known = next((call for call in calls if call.response_id == response_id), None)
            if known is not None:
                return known
        lane = self._lanes.get(name)
        if lane is not None and lane.open:
            return lane.open[0]
        return calls[0] if len(calls) == 1 and (name is None or calls[0].lane is None) else None

    def _start_by_server(self, value: JsonObject, at: int) -> ConnectionCall:
        """Start a response that the server began, with the steering input and the settings of the previous call."""
        name = string(value.get("stream_id"))
        lane = self._lanes.get(name)
        before = self._by_response(string(obj(value.get("response")).get("previous_response_id")))
        before = before or (lane.last if lane is not None else None)
        if before is None:
            return self._begin({}, at, name)
        body = {k: v for k, v in before.body.items() if k not in ("input", "previous_response_id")}
        if before.response_id is not None:
            body["previous_response_id"] = before.response_id
        body["input"], before.steers = before.steers, []
        return self._begin(body, at, name)

    def _steer_failed(self, steer: JsonObject) -> None:
        """Remove steering input that the server could not use."""
        target = self._by_response(string(steer.get("previous_response_id")))
        for item in _listed(steer.get("input")):
            if target is not None and item in target.steers:
                target.steers.remove(item)

    def _end(self, call: ConnectionCall, at: int) -> ConnectionCall:
        call.ended_at = at
        lane = self._lanes[call.lane]
        lane.open.remove(call)
        lane.last = call
        return call

    def _by_response(self, response_id: str | None) -> ConnectionCall | None:
        if response_id is None:
            return None
        near = (call for lane in self._lanes.values() for call in (*lane.open, lane.last) if call is not None)
        return next((call for call in near if call.response_id == response_id), None)

    def _mark(self, call: ConnectionCall) -> None:
        call.frames.append(self._messages)

    def _keep(self, message: WsMessage, block: Unknown) -> None:
        """Keep a message that is not an event with the active call, or the last one."""
        finished = [lane.last for lane in self._lanes.values() if lane.last is not None]
        call = next(iter(self.open_calls()), finished[-1] if finished else None)
        if call is not None and self._has_room(call, message):
            call.kept.append(block)
            self._mark(call)


def _listed(given: Json) -> list[Json]:
    return list(given) if isinstance(given, list) else [given] if given is not None else []


class ResponsesSocket:
    """`openai.responses` over a WebSocket."""

    name: ClassVar[str] = OpenAIResponses.name

    def claims_socket(self, exchange: Exchange) -> Claim:
        """Bid by the first messages of a connection."""
        path = path_of(exchange.request.url)
        if path.endswith("/realtime"):
            return Claim.NO  # its messages have the same names
        types = [(message.sender, _type_of(message)) for message in exchange.messages[:_LOOK_AT]]
        if ("client", "response.create") not in types:
            return Claim.NO
        if path.endswith("/responses"):
            return Claim.CERTAIN
        return Claim.NO if any(kind.startswith(_REALTIME) for _, kind in types) else Claim.BODY

    def decode_socket(self, exchange: Exchange, memo: Memo) -> list[ModelCall]:
        return socket_calls(exchange, memo)

    def follow(self) -> Follower:
        return Follower()


def _type_of(message: WsMessage) -> str:
    return string(obj(body_json(message.body)).get("type")) or ""


class Follower:
    """Decodes the calls of an open connection. Stored histories are not resolved: they need the whole tape."""

    def __init__(self) -> None:
        self._splitter = SocketSplitter(most=_MOST_FOLLOWED)

    def feed(self, exchange: Exchange, message: WsMessage) -> list[ModelCall]:
        finished = self._splitter.feed(message)
        if finished is None:
            return []
        call = decode_call(finished, exchange, Memo())
        finished.events, finished.kept = [], []  # later calls need only the body
        return [call]

    def rest(self, exchange: Exchange) -> list[ModelCall]:
        return [decode_call(call, exchange, Memo()) for call in self._splitter.open_calls()]


def socket_calls(exchange: Exchange, memo: Memo) -> list[ModelCall]:
    """Decode every call of a connection, by start, unfinished ones included."""
    splitter = SocketSplitter()
    calls = [call for message in exchange.messages if (call := splitter.feed(message)) is not None]
    calls = sorted([*calls, *splitter.open_calls()], key=lambda call: call.number)
    return [decode_call(call, exchange, memo) for call in calls]


def decode_call(call: ConnectionCall, exchange: Exchange, memo: Memo) -> ModelCall:
    """Decode one call of a connection. `exchange` provides its URL, its headers and its end."""
    request = responses_request(call.body, memo)
    if call.queued:
        start = next((at for at, name in request.segments if name == "input"), len(request.messages))
        queued = tuple(map(input_item, call.queued))
        later = tuple((at + len(queued), name) for at, name in request.segments if at >= start)
        before = tuple(segment for segment in request.segments if segment[0] < start)
        messages = request.messages[:start] + queued + request.messages[start:]
        request = replace(request, messages=messages, segments=(*before, (start, "steer"), *later))
    decoded = build_call(exchange, OpenAIResponses.name, request, _response(call, exchange))
    return replace(
        decoded,
        kind=call_kind(exchange.request.url, request),
        at=call.at,
        ended_at=call.ended_at if call.ended_at is not None else exchange.ended_at,
        ended=Ended.COMPLETE if call.ended_at is not None else _ended_early(exchange),
        headers=_linking_headers(exchange.request.headers, call.body),
        part=call.number,
        frames=tuple(call.frames),
    )


def _ended_early(exchange: Exchange) -> Ended | None:
    """Return how a call without a terminal event ended: by the side that closed the connection."""
    if exchange.ended is Ended.COMPLETE:
        by_client = exchange.close is not None and exchange.close.sender == "client"
        return Ended.CLIENT_CLOSED if by_client else Ended.UPSTREAM_CLOSED
    return exchange.ended


def _response(call: ConnectionCall, exchange: Exchange) -> CallResponse | None:
    if not call.events and not call.kept:
        return None
    handshake = exchange.response
    # Events have no status, unless they are errors: use the handshake's.
    response_head = Response(
        handshake.status if handshake else 101, handshake.headers if handshake else Headers(), call.at
    )
    response = from_events(response_head, EventPayload(call.events))
    if response.error is not None and response.error.status >= 400:
        response = replace(response, status=response.error.status)
    if call.kept:
        kept = Message("system", tuple(call.kept), ("",) * len(call.kept))
        response = replace(response, messages=(*response.messages, kept))
    return response


def _linking_headers(handshake: Headers, body: JsonObject) -> tuple[tuple[str, str], ...]:
    """Return the handshake's linking headers, overridden by the call's metadata."""
    metadata = obj(body.get("client_metadata"))
    own = Headers((_NAMED_IN_METADATA.get(k, k), v) for k, v in metadata.items() if isinstance(v, str))
    return tuple({**dict(linking_headers(handshake)), **dict(linking_headers(own))}.items())


def lane_of(message: Json) -> Json:
    """Return the `stream_id` of a message, or None."""
    return obj(message).get(_LANE)


def same_kind(one: Json, other: Json) -> bool:
    """Return whether two messages have the same type and lane."""
    if isinstance(one, dict) and isinstance(other, dict):
        return all(one.get(name) == other.get(name) for name in ("type", _LANE))
    return type(one) is type(other)


def error_event(status: int, body: bytes, headers: Sequence[tuple[str, str]] = (), lane: Json = None) -> str:
    """Return an HTTP error's body as the event that reports it to a client."""
    try:
        event = orjson.loads(body)
    except ValueError:
        event = {}
    event = event if isinstance(event, dict) else {}
    if headers and isinstance(event.get("error"), dict):
        event["error"]["headers"] = dict(headers)
    own = {} if lane is None else {_LANE: lane}
    return orjson.dumps({"type": "error", "status": status, **event, **own}).decode()
