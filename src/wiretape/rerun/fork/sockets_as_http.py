"""The calls of WebSockets as exchanges over HTTP that say the same, each with all of its history.

A connection's calls name the answer that they follow, and the provider holds the rest for as long as it stands. What
goes on from the middle of one has to bring the history itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from wiretape.model.call import ModelCall
from wiretape.model.http import Ended, Exchange, Headers, JsonBody, Request, Response, StreamBody, body_bytes
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.lenient import body_json, obj
from wiretape.wire.next_request import grower_of
from wiretape.wire.openai.responses_frames import as_http_body, can_be_told
from wiretape.wire.registry import Registry, decode

_OF_SOCKETS: Final = ("sec-websocket-", "upgrade", "connection", "content-length", "content-type")
_EVENTS: Final = Headers([("content-type", "text/event-stream")])


@dataclass(frozen=True, slots=True)
class Unheld:
    """`exchanges`, numbered anew from 1; `before`: of each the number of the recorded one that it is, or is part of.

    `opened`: those that were on a WebSocket.
    """

    exchanges: list[Exchange]
    before: dict[int, int]
    opened: frozenset[int]


def unheld(exchanges: Sequence[Exchange], registry: Registry) -> Unheld:
    """All exchanges, those of HTTP as they are. Where there is no WebSocket with calls, nothing is another."""
    calls: dict[int, list[ModelCall]] = {}
    for call in decode(exchanges, registry):
        if call.frames:
            calls.setdefault(call.exchange, []).append(call)
    made: list[tuple[int, Exchange]] = []
    for exchange in exchanges:
        own = calls.get(exchange.number)
        if own is None:
            made.append((exchange.number, exchange))
        else:
            made += [(exchange.number, one) for one in _opened(exchange, own, registry)]
    if calls:
        made.sort(key=lambda one: (one[1].at, one[0]))  # stable: the calls of a connection keep their order
        made = [(before, replace(one, number=number)) for number, (before, one) in enumerate(made, 1)]
    opened = frozenset(one.number for before, one in made if before in calls)
    return Unheld([one for _, one in made], {one.number: before for before, one in made}, opened)


def _opened(exchange: Exchange, calls: Sequence[ModelCall], registry: Registry) -> list[Exchange]:
    """Each call of a connection as an exchange of its own."""
    histories: dict[str, list[Json]] = {}  # what stands before the request that follows an answer, by the answer's id
    made = []
    for call in calls:
        grower: Any = grower_of(registry.named(call.format))
        body, response = _asked(exchange, call), _answered(exchange, call)
        if hasattr(grower, "previous"):  # the provider may hold a history
            before = histories.get(str(body.get(grower.previous) or ""))
            said = grower.listed(body.get("input"))
            if before is not None:
                said = [*before, *said]
                body = {name: value for name, value in body.items() if name != grower.previous} | {"input": said}
            answer = grower.answer(response) if response is not None else {}
            if answer.get("id"):  # what broke off before it had a name is followed by nothing
                known = [*said, *filter(can_be_told, grower.handed_back(answer, None))]
                histories[str(answer["id"])] = known
        request = Request("POST", _as_http(exchange.request.url), _headers(exchange, call), JsonBody(body))
        made.append(Exchange(0, call.at, request, response, call.ended or Ended.UPSTREAM_CLOSED, call.ended_at))
    return made


def _asked(exchange: Exchange, call: ModelCall) -> JsonObject:
    for frame in call.frames:
        message = exchange.messages[frame - 1] if frame <= len(exchange.messages) else None
        if message is not None and message.sender == "client":
            return as_http_body(obj(body_json(message.body)))
    return {}


def _answered(exchange: Exchange, call: ModelCall) -> Response | None:
    said = [exchange.messages[frame - 1] for frame in call.frames if frame <= len(exchange.messages)]
    said = [message for message in said if message.sender == "server"]
    if not said:
        return None
    frames = [b"data: " + body_bytes(message.body) + b"\n\n" for message in said]
    return Response(200, _EVENTS, said[0].at, StreamBody(frames, [message.at - said[0].at for message in said]))


def _headers(exchange: Exchange, call: ModelCall) -> Headers:
    told = {name for name, _ in call.headers}
    kept = [
        pair
        for pair in exchange.request.headers.pairs()
        if pair[0] not in told and not pair[0].lower().startswith(_OF_SOCKETS)
    ]
    return Headers([*kept, *call.headers, ("content-type", "application/json")])


def _as_http(url: str) -> str:
    return "http" + url[2:] if url.startswith(("ws:", "wss:")) else url
