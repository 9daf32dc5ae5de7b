"""The Responses API over a WebSocket: which messages of one connection make up which model call.

A call is a `response.create` message and the events up to its terminal one. Calls of a lane (`stream_id`; without one
the whole connection is a lane) are answered in the order in which they were asked. `SocketSplitter` takes one message
at a time and holds only what is not finished, so that a connection may be followed while it is open.
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

NAMES_BEFORE: Final = "previous_response_id"  # the member that names the response whose history is continued
_LANE: Final = "stream_id"
_LOOK_AT = 8  # messages of a connection that are looked at for signs
_MOST_FOLLOWED = 4 * 1024 * 1024  # bytes of one answer's events that are held while a connection is followed
_MOST_IDLE = 64  # lanes without an open call that are remembered
_REALTIME = ("session.", "conversation.", "input_audio_buffer.")  # another protocol, with a `response.create`, too
_NAMED_IN_METADATA = {"thread_id": "thread-id", "session_id": "session-id"}


@dataclass(slots=True, eq=False)
class Part:
    """One call of a connection while its messages come. `number` counts them from 1, by start."""

    number: int
    at: int
    body: JsonObject
    lane: str | None
    queued: list[Json] = field(default_factory=list)  # steering input that the server puts before this call's own
    steers: list[Json] = field(default_factory=list)  # steering input for what follows this call's response
    response_id: str | None = None
    frames: list[int] = field(default_factory=list)  # ordinals of its messages, from 1
    events: list[Event] = field(default_factory=list)
    kept: list[Unknown] = field(default_factory=list)  # what is no event: binary messages, text that is no JSON
    size: int = 0
    ended_at: int | None = None


class _Lane:
    """Calls that are answered in order."""

    __slots__ = ("last", "open")

    def __init__(self) -> None:
        self.open: deque[Part] = deque()
        self.last: Part | None = None  # the last that was finished


class SocketSplitter:
    """Feed it a connection's messages in order; it gives each call as soon as its terminal event is there.

    `most`: bytes of one call's events that are held; beyond it deltas are left out (the terminal event repeats them).
    """

    def __init__(self, most: int | None = None) -> None:
        self._lanes: dict[str | None, _Lane] = {}
        self._most = most
        self._messages = 0
        self._parts = 0

    def feed(self, message: WsMessage) -> Part | None:
        """The call that this message completes, if it completes one."""
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
            self._asked(kind, value, message)
            return None
        return self._answered(kind, value, message)

    def open_parts(self) -> list[Part]:
        """The calls that have no terminal event yet, by start."""
        return sorted((part for lane in self._lanes.values() for part in lane.open), key=lambda part: part.number)

    # -- what the client says --------------------------------------------------------------------------------------

    def _asked(self, kind: str, value: JsonObject, message: WsMessage) -> None:
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
        if isinstance(wrapped, dict):  # as an older protocol has it
            value = {**{k: v for k, v in value.items() if k != "response"}, **wrapped}
        part = self._begin(value, at, string(value.get("stream_id")))
        before = self._by_response(string(value.get("previous_response_id")))
        if before is not None:
            part.queued, before.steers = before.steers, []
        self._mark(part)

    def _begin(self, body: JsonObject, at: int, name: str | None) -> Part:
        self._parts += 1
        part = Part(self._parts, at, body, name)
        if name not in self._lanes:
            self._forget_idle()
            self._lanes[name] = _Lane()
        self._lanes[name].open.append(part)
        return part

    def _forget_idle(self) -> None:
        idle = [name for name, lane in self._lanes.items() if not lane.open]
        for name in idle[: max(0, len(idle) - _MOST_IDLE)]:
            del self._lanes[name]

    # -- what the server says --------------------------------------------------------------------------------------

    def _answered(self, kind: str, value: JsonObject, message: WsMessage) -> Part | None:
        response_id = string(obj(value.get("response")).get("id"))
        part = self._open_part(string(value.get("stream_id")), response_id)
        if part is None and kind == "response.created":
            part = self._successor(value, message.at)
        if kind == "response.steer.failed":
            self._steer_failed(obj(value.get("steer")))
        if part is None:
            return None
        self._mark(part)
        part.response_id = part.response_id or response_id
        ends = kind in TERMINAL or kind == "error"
        if ends or self._has_room(part, message):
            part.events.append(Event("", value, message.at - part.at))
        return self._end(part, message.at) if ends else None

    def _has_room(self, part: Part, message: WsMessage) -> bool:
        if self._most is None:
            return True
        part.size += len(raw_bytes(message.body))
        return part.size <= self._most

    def _open_part(self, name: str | None, response_id: str | None) -> Part | None:
        """The call that an event belongs to: by its response's id, by its lane, else the only lane at work."""
        parts = [lane.open[0] for lane in self._lanes.values() if lane.open]
        if response_id is not None:
            known = next((part for part in parts if part.response_id == response_id), None)
            if known is not None:
                return known
        lane = self._lanes.get(name)
        if lane is not None and lane.open:
            return lane.open[0]
        return parts[0] if len(parts) == 1 and (name is None or parts[0].lane is None) else None

    def _successor(self, value: JsonObject, at: int) -> Part:
        """A response that the server began by itself, with steering input and the settings of the one before."""
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
        """Input that could not be used comes back: nothing that follows has it."""
        target = self._by_response(string(steer.get("previous_response_id")))
        for item in _listed(steer.get("input")):
            if target is not None and item in target.steers:
                target.steers.remove(item)

    def _end(self, part: Part, at: int) -> Part:
        part.ended_at = at
        lane = self._lanes[part.lane]
        lane.open.remove(part)
        lane.last = part
        return part

    def _by_response(self, response_id: str | None) -> Part | None:
        if response_id is None:
            return None
        near = (part for lane in self._lanes.values() for part in (*lane.open, lane.last) if part is not None)
        return next((part for part in near if part.response_id == response_id), None)

    def _mark(self, part: Part) -> None:
        part.frames.append(self._messages)

    def _keep(self, message: WsMessage, block: Unknown) -> None:
        """What is no event stands with the call at work, else with the last one."""
        at_work = self.open_parts()
        finished = [lane.last for lane in self._lanes.values() if lane.last is not None]
        part = next(iter(at_work), finished[-1] if finished else None)
        if part is not None and self._has_room(part, message):
            part.kept.append(block)
            self._mark(part)


def _listed(given: Json) -> list[Json]:
    return list(given) if isinstance(given, list) else [given] if given is not None else []


class ResponsesSocket:
    """`openai.responses` where it comes over a WebSocket."""

    name: ClassVar[str] = OpenAIResponses.name

    def claims_socket(self, exchange: Exchange) -> Claim:
        """A bid by the first messages of a connection."""
        path = path_of(exchange.request.url)
        if path.endswith("/realtime"):
            return Claim.NO  # its messages are named alike
        said = [(message.sender, _type_of(message)) for message in exchange.messages[:_LOOK_AT]]
        if ("client", "response.create") not in said:
            return Claim.NO
        if path.endswith("/responses"):
            return Claim.CERTAIN
        return Claim.NO if any(kind.startswith(_REALTIME) for _, kind in said) else Claim.BODY

    def decode_socket(self, exchange: Exchange, memo: Memo) -> list[ModelCall]:
        return socket_calls(exchange, memo)

    def follow(self) -> Follower:
        return Follower()


def _type_of(message: WsMessage) -> str:
    return string(obj(body_json(message.body)).get("type")) or ""


class Follower:
    """The calls of an open connection, one by one. Their histories are not put together: that needs the whole tape."""

    def __init__(self) -> None:
        self._splitter = SocketSplitter(most=_MOST_FOLLOWED)

    def feed(self, exchange: Exchange, message: WsMessage) -> list[ModelCall]:
        part = self._splitter.feed(message)
        if part is None:
            return []
        call = decode_part(part, exchange, Memo())
        part.events, part.kept = [], []  # what may follow from this part needs its body only
        return [call]

    def rest(self, exchange: Exchange) -> list[ModelCall]:
        return [decode_part(part, exchange, Memo()) for part in self._splitter.open_parts()]


def socket_calls(exchange: Exchange, memo: Memo) -> list[ModelCall]:
    """Every call of a connection, by start; those without a terminal event as far as they came."""
    splitter = SocketSplitter()
    parts = [part for message in exchange.messages if (part := splitter.feed(message)) is not None]
    parts = sorted([*parts, *splitter.open_parts()], key=lambda part: part.number)
    return [decode_part(part, exchange, memo) for part in parts]


def decode_part(part: Part, exchange: Exchange, memo: Memo) -> ModelCall:
    """One call of a connection. `exchange` gives its address, its headers, and how it ended; not its messages."""
    request = responses_request(part.body, memo)
    if part.queued:
        start = next((at for at, name in request.segments if name == "input"), len(request.messages))
        queued = tuple(map(input_item, part.queued))
        later = tuple((at + len(queued), name) for at, name in request.segments if at >= start)
        before = tuple(segment for segment in request.segments if segment[0] < start)
        messages = request.messages[:start] + queued + request.messages[start:]
        request = replace(request, messages=messages, segments=(*before, (start, "steer"), *later))
    called = build_call(exchange, OpenAIResponses.name, request, _response(part, exchange))
    return replace(
        called,
        kind=call_kind(exchange.request.url, request),
        at=part.at,
        ended_at=part.ended_at if part.ended_at is not None else exchange.ended_at,
        ended=Ended.COMPLETE if part.ended_at is not None else _broken_off(exchange),
        headers=_linking(exchange.request.headers, part.body),
        part=part.number,
        frames=tuple(part.frames),
    )


def _broken_off(exchange: Exchange) -> Ended | None:
    """How a call ended that has no terminal event: by whoever closed the connection, however politely."""
    if exchange.ended is Ended.COMPLETE:
        by_client = exchange.close is not None and exchange.close.sender == "client"
        return Ended.CLIENT_CLOSED if by_client else Ended.UPSTREAM_CLOSED
    return exchange.ended


def _response(part: Part, exchange: Exchange) -> CallResponse | None:
    if not part.events and not part.kept:
        return None
    shake = exchange.response
    # The status of the handshake: an event has one of its own only where it is an error.
    shown = Response(shake.status if shake else 101, shake.headers if shake else Headers(), part.at)
    response = from_events(shown, EventPayload(part.events))
    if response.error is not None and response.error.status >= 400:
        response = replace(response, status=response.error.status)
    if part.kept:
        kept = Message("system", tuple(part.kept), ("",) * len(part.kept))
        response = replace(response, messages=(*response.messages, kept))
    return response


def _linking(shake: Headers, body: JsonObject) -> tuple[tuple[str, str], ...]:
    """The handshake's linking headers, and what the call's own metadata says in their stead."""
    told = obj(body.get("client_metadata"))
    own = Headers((_NAMED_IN_METADATA.get(k, k), v) for k, v in told.items() if isinstance(v, str))
    return tuple({**dict(linking_headers(shake)), **dict(linking_headers(own))}.items())


def lane_of(message: Json) -> Json:
    """Which of the calls that share a connection a message belongs to; None where it does not say."""
    return obj(message).get(_LANE)


def same_kind(one: Json, other: Json) -> bool:
    """Whether two messages are of one sort: their type, and their lane."""
    if isinstance(one, dict) and isinstance(other, dict):
        return all(one.get(name) == other.get(name) for name in ("type", _LANE))
    return type(one) is type(other)


def error_event(status: int, body: bytes, headers: Sequence[tuple[str, str]] = (), lane: Json = None) -> str:
    """An error's body over HTTP as the event that tells a client of it."""
    try:
        told = orjson.loads(body)
    except ValueError:
        told = {}
    told = told if isinstance(told, dict) else {}
    if headers and isinstance(told.get("error"), dict):
        told["error"]["headers"] = dict(headers)
    own = {} if lane is None else {_LANE: lane}
    return orjson.dumps({"type": "error", "status": status, **told, **own}).decode()
