"""Converts the model calls of WebSockets to HTTP exchanges, each with its whole history.

On a WebSocket, a call names the answer that it follows, and the provider stores the history while the connection is
open. A fork from the middle of a connection has to send the history itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from wiretape.model.call import ModelCall
from wiretape.model.http import Ended, Exchange, Headers, JsonBody, Request
from wiretape.model.jsonvalue import Json
from wiretape.rerun.next_request.builders import builder_for
from wiretape.rerun.next_request.stored_history import StoredHistory
from wiretape.rerun.socket_calls import http_url, socket_body, socket_response
from wiretape.wire.lenient import obj
from wiretape.wire.registry import Registry, decode

_SOCKET_HEADERS: Final = ("sec-websocket-", "upgrade", "connection", "content-length", "content-type")


@dataclass(frozen=True, slots=True)
class SocketsAsHttp:
    """HTTP exchanges, numbered from 1. `origins` maps their numbers to those of the recorded exchanges."""

    exchanges: list[Exchange]
    origins: dict[int, int]
    from_sockets: frozenset[int]  # numbers of the exchanges that were WebSocket calls


def sockets_as_http(exchanges: Sequence[Exchange], registry: Registry) -> SocketsAsHttp:
    """Convert the calls of all WebSockets; HTTP exchanges stay unchanged, except for their numbers."""
    calls: dict[int, list[ModelCall]] = {}
    for call in decode(exchanges, registry):
        if call.frames:
            calls.setdefault(call.exchange, []).append(call)
    pairs: list[tuple[int, Exchange]] = []
    for exchange in exchanges:
        own = calls.get(exchange.number)
        if own is None:
            pairs.append((exchange.number, exchange))
        else:
            pairs += [(exchange.number, one) for one in _socket_exchanges(exchange, own, registry)]
    if calls:
        pairs.sort(key=lambda pair: (pair[1].at, pair[0]))  # stable: the calls of a connection keep their order
        pairs = [(origin, replace(one, number=number)) for number, (origin, one) in enumerate(pairs, 1)]
    from_sockets = frozenset(one.number for origin, one in pairs if origin in calls)
    return SocketsAsHttp([one for _, one in pairs], {one.number: origin for origin, one in pairs}, from_sockets)


def _socket_exchanges(exchange: Exchange, calls: Sequence[ModelCall], registry: Registry) -> list[Exchange]:
    """Return each call of a connection as an exchange."""
    histories: dict[str, list[Json]] = {}  # answer id -> the history up to that answer
    made = []
    for call in calls:
        builder = builder_for(registry.named(call.format))
        body, response = socket_body(exchange, call), socket_response(exchange, call)
        if isinstance(builder, StoredHistory):
            name = builder.previous_member
            before = histories.get(str(body.get(name) or ""))
            history = builder.history_items(body.get("input"))
            if before is not None:
                history = [*before, *history]
                body = {key: value for key, value in body.items() if key != name} | {"input": history}
            answer = builder.read_answer(response) if response is not None else {}
            if answer.get("id"):
                sendable = filter(_can_be_sent, builder.answer_items(answer, None))
                histories[str(answer["id"])] = [*history, *sendable]
        request = Request("POST", http_url(exchange.request.url), _headers(exchange, call), JsonBody(body))
        made.append(Exchange(0, call.at, request, response, call.ended or Ended.UPSTREAM_CLOSED, call.ended_at))
    return made


def _can_be_sent(item: Json) -> bool:
    """Return False for reasoning whose content only the provider has."""
    return obj(item).get("type") != "reasoning" or bool(obj(item).get("encrypted_content"))


def _headers(exchange: Exchange, call: ModelCall) -> Headers:
    own = {name for name, _ in call.headers}
    kept = [
        pair
        for pair in exchange.request.headers.pairs()
        if pair[0] not in own and not pair[0].lower().startswith(_SOCKET_HEADERS)
    ]
    return Headers([*kept, *call.headers, ("content-type", "application/json")])
