"""Recorded exchanges, made ready to be compared: addresses and bodies taken apart, model calls numbered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from wiretape.model.http import Body, Exchange, JsonBody, body_bytes
from wiretape.model.jsonvalue import Json
from wiretape.replay.index import Probe
from wiretape.replay.multipart import parts_of
from wiretape.replay.values import Reference, address
from wiretape.wire.base import WireFormat
from wiretape.wire.registry import Registry, decode

if TYPE_CHECKING:
    from wiretape.tape.reader import Tape


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """A recorded HTTP exchange that can answer."""

    order: int
    tape: int
    reference: Reference
    exchange: Exchange
    probe: Probe  # its format is recognised from the request alone, as a live one's is


def recorded_exchanges(tapes: Sequence[Tape], registry: Registry) -> tuple[list[Recorded], list[Recorded]]:
    """The exchanges of all tapes in order, and apart from them the WebSocket connections."""
    recorded: list[Recorded] = []
    sockets: list[Recorded] = []
    for position, tape in enumerate(tapes):
        numbers = _call_numbers(tape, registry)
        name = str(tape.path or "tape")
        for exchange in tape.exchanges:
            is_socket = exchange.messages or (exchange.response is not None and exchange.response.status == 101)
            kept = sockets if is_socket else recorded
            where = address(exchange.request.method, exchange.request.url)
            kept.append(
                Recorded(
                    order=len(kept),
                    tape=position,
                    reference=Reference(name, exchange.number, numbers.get(exchange.number), where.what),
                    exchange=exchange,
                    probe=Probe(
                        address=where,
                        value=plain(
                            body_value(exchange.request.body), exchange.request.headers.get("content-type", "")
                        ),
                        format=(
                            _socket_format(exchange, registry)
                            if is_socket
                            else registry.recognise_request(exchange.request)
                        ),
                        request=exchange.request,
                    ),
                )
            )
    return recorded, sockets


def _socket_format(exchange: Exchange, registry: Registry) -> WireFormat | None:
    """What a WebSocket's messages are compared as: the format of the same name, which speaks HTTP."""
    spoken = registry.socket_format(exchange)
    return next((one for one in registry.formats if spoken is not None and one.name == spoken.name), None)


def _call_numbers(tape: Tape, registry: Registry) -> dict[int, int]:
    """The number of the call that each exchange is."""
    if any(exchange.messages for exchange in tape.exchanges):  # one connection may hold many calls
        return {call.exchange: call.number for call in decode(tape.exchanges, registry)}
    known = (exchange.number for exchange in tape.exchanges if registry.recognise(exchange) is not None)
    return {exchange: number for number, exchange in enumerate(known, 1)}


def body_value(body: Body | None) -> Json:
    """A request's body as a JSON value where it is one, else as bytes; None for an empty one."""
    match body:
        case JsonBody(value=value):
            return value
        case None:
            return None
    data = body_bytes(body)
    try:
        return orjson.loads(data)
    except ValueError:
        return data or None


def plain(value: Json, content_type: str = "") -> Json:
    """A body value as JSON, so that it can be compared: a form by its parts, other bytes as text."""
    if not isinstance(value, bytes):
        return value
    return parts_of(value, content_type) or {"bytes": value.decode("utf-8", "surrogateescape")}
