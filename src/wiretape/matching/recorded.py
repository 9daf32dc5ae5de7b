"""Recorded exchanges, prepared for comparison: split addresses, parsed bodies, call numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import orjson

from wiretape.compare.address import address
from wiretape.compare.multipart import parts_of
from wiretape.matching.lookup.index import Probe
from wiretape.matching.values import Reference
from wiretape.model.call import CallRequest
from wiretape.model.http import Body, Ended, Exchange, JsonBody, StreamBody, body_bytes, bracketed
from wiretape.model.jsonvalue import Json
from wiretape.wire.base import Memo, WireFormat
from wiretape.wire.registry import Registry, decode

if TYPE_CHECKING:
    from wiretape.tape.reading.reader import Tape

from collections import defaultdict
from collections.abc import Hashable
from functools import cached_property
from typing import TYPE_CHECKING

from wiretape.compare.mask import Masker
from wiretape.model.common_prefix import CommonPrefixes

if TYPE_CHECKING:
    from wiretape.tape.reading.reader import Tape

from collections.abc import Iterable, Iterator
from itertools import islice

from wiretape.model.header_links import LINK_HEADERS, joined, replace_links
from wiretape.model.http import Headers
from wiretape.tape.redaction import PLACEHOLDER, matches


@dataclass(frozen=True, slots=True, eq=False)
class SocketCall:
    """A call of a WebSocket. `messages`: their indexes. `request`: with the history that the provider stores."""

    number: int
    messages: tuple[int, ...]
    request: CallRequest


@dataclass(frozen=True, slots=True, eq=False)
class RecordedExchange:
    """A recorded exchange that can answer. `calls`: the calls of a WebSocket, in the order of their starts."""

    order: int
    tape: int
    reference: Reference
    exchange: Exchange
    probe: Probe  # its format is recognized from the request, like that of a live one
    calls: tuple[SocketCall, ...] = ()
    begins: Mapping[int, SocketCall] = field(init=False)  # calls by the index of their first message

    def __post_init__(self) -> None:
        object.__setattr__(self, "begins", {call.messages[0]: call for call in self.calls})

    def call_of(self, message: int) -> SocketCall | None:
        """The call of a WebSocket's message; for a message between calls, the last call before it."""
        own = self.begins.get(message) or next((call for call in self.calls if message in call.messages), None)
        before = (call for call in self.calls if call.messages[0] < message)
        return own or max(before, key=lambda call: call.messages[0], default=None)

    def reference_at(self, message: int) -> Reference:
        """The reference of that call; of the connection if there is none."""
        call = self.call_of(message)
        return self.reference if call is None else self.reference_of(call)

    def reference_of(self, call: SocketCall) -> Reference:
        return replace(self.reference, call=call.number)


def recorded_exchanges(
    tapes: Sequence[Tape], registry: Registry
) -> tuple[list[RecordedExchange], list[RecordedExchange]]:
    """The HTTP exchanges of all tapes in order, and the WebSocket connections."""
    recorded: list[RecordedExchange] = []
    sockets: list[RecordedExchange] = []
    for position, tape in enumerate(tapes):
        socket_calls = _socket_calls(tape, registry)
        numbers = socket_calls.numbers or _call_numbers(tape, registry)
        name = str(tape.path or "tape")
        for exchange in tape.exchanges:
            is_socket = exchange.messages or (exchange.response is not None and exchange.response.status == 101)
            kept = sockets if is_socket else recorded
            where = address(exchange.request.method, exchange.request.url)
            kept.append(
                RecordedExchange(
                    order=len(kept),
                    tape=position,
                    reference=Reference(name, exchange.number, numbers.get(exchange.number), where.what),
                    exchange=_as_heard(exchange, registry),
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
                    calls=socket_calls.of.get(exchange.number, ()),
                )
            )
    return recorded, sockets


def _as_heard(exchange: Exchange, registry: Registry) -> Exchange:
    """The exchange, complete if its client closed a stream after the last event: other clients wait for the end."""
    response = exchange.response
    if exchange.ended is not Ended.CLIENT_CLOSED or response is None or not isinstance(response.body, StreamBody):
        return exchange
    calls = registry.calls_of(exchange, Memo())
    whole = any(call.response is not None and call.response.complete for call in calls)
    return replace(exchange, ended=Ended.COMPLETE) if whole else exchange


def _socket_format(exchange: Exchange, registry: Registry) -> WireFormat | None:
    """The HTTP wire format of the same name as a WebSocket's format."""
    wire_format = registry.socket_format(exchange)
    return next((one for one in registry.formats if wire_format is not None and one.name == wire_format.name), None)


@dataclass(frozen=True, slots=True)
class _SocketCalls:
    """The calls of a tape with WebSockets: the first call number by exchange, and the calls of each WebSocket."""

    numbers: dict[int, int] = field(default_factory=dict)
    of: dict[int, tuple[SocketCall, ...]] = field(default_factory=dict)


def _socket_calls(tape: Tape, registry: Registry) -> _SocketCalls:
    if not any(exchange.messages for exchange in tape.exchanges):
        return _SocketCalls()
    calls = decode(tape.exchanges, registry)  # one connection may have many
    of: dict[int, list[SocketCall]] = {}
    for call in calls:
        if call.frames:
            made = SocketCall(call.number, tuple(frame - 1 for frame in call.frames), call.request)
            of.setdefault(call.exchange, []).append(made)
    return _SocketCalls(
        {call.exchange: call.number for call in reversed(calls)}, {number: tuple(made) for number, made in of.items()}
    )


def _call_numbers(tape: Tape, registry: Registry) -> dict[int, int]:
    """The call number by exchange number."""
    known = (exchange.number for exchange in tape.exchanges if registry.recognise(exchange) is not None)
    return {exchange: number for number, exchange in enumerate(known, 1)}


def body_value(body: Body | None) -> Json:
    """A request's body: a JSON value, or bytes that are not JSON; None if it is empty."""
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
    """A body value as JSON for comparison: a form by its parts, other bytes as text."""
    if not isinstance(value, bytes):
        return value
    return parts_of(value, content_type) or {"bytes": value.decode("utf-8", "surrogateescape")}


@dataclass(eq=False)
class ReplaySource:
    """The recorded exchanges of all tapes, and what the parts of a session share to compare requests with them."""

    tapes: Sequence[Tape]
    registry: Registry
    masker: Masker
    exchanges: Sequence[RecordedExchange] = field(init=False)
    sockets: Sequence[RecordedExchange] = field(init=False)
    played: bytearray = field(init=False)  # one byte for each exchange: whether it was played
    prefixes: CommonPrefixes = field(default_factory=CommonPrefixes)
    memo: Memo = field(init=False)

    def __post_init__(self) -> None:
        self.exchanges, self.sockets = recorded_exchanges(self.tapes, self.registry)
        self.played = bytearray(len(self.exchanges))
        self.memo = Memo(self.prefixes.common)

    def knows_host(self, host: str) -> bool:
        """Whether the tapes have an exchange with this host, given with or without its port."""
        return host in self._hosts or host in self._host_names

    def knows_port(self, host: str, port: int) -> bool:
        """Whether the tapes have an exchange with this port of a host."""
        return any(
            address("GET", f"{scheme}://{bracketed(host)}:{port}/").host in self._hosts for scheme in ("http", "https")
        )

    def knows_plain(self, host: str, port: int) -> bool:
        """Whether the tapes have an exchange with this port in plain HTTP."""
        there = address("GET", f"http://{bracketed(host)}:{port}/").host
        return any(
            recorded.probe.address.host == there and recorded.exchange.request.url.startswith("http:")
            for recorded in self._every
        )

    @property
    def formats(self) -> set[str]:
        """The names of the wire formats on the tapes."""
        return {recorded.probe.format.name for recorded in self._every if recorded.probe.format is not None}

    @property
    def _every(self) -> list[RecordedExchange]:
        return [*self.exchanges, *self.sockets]

    @cached_property
    def _hosts(self) -> frozenset[str]:
        """The hosts on the tapes, with their ports."""
        return frozenset(recorded.probe.address.host for recorded in self._every)

    @cached_property
    def _host_names(self) -> frozenset[str]:
        return frozenset(recorded.probe.address.hostname for recorded in self._every)

    @cached_property
    def groups(self) -> Mapping[Hashable, Sequence[int]]:
        """Orders of similar exchanges, in which the nearest one is searched.

        Model calls are grouped by format, and by format and last path segment; other exchanges by method and path, and
        by method, path and host.
        """
        made: dict[Hashable, list[int]] = defaultdict(list)
        for one in self.exchanges:
            where, form = one.probe.address, one.probe.format
            if form is not None:
                keys: tuple[Hashable, ...] = (form.name, (form.name, where.tail))
            else:
                keys = ((where.method, where.path, ""), (where.method, where.path, where.host))
            for key in dict.fromkeys(keys):
                made[key].append(one.order)
        return dict(made)


_FOLLOWS_WITHIN = 100  # exchanges after the link


def restored(exchange: Exchange, recorded: Sequence[RecordedExchange], order: int) -> Exchange:
    """The exchange at `order` with the query values that redaction removed from links in its response headers.

    A later recorded request has them. A client that follows such a link then sends the recorded request.
    """
    response = exchange.response
    if response is None or not _has_placeholder(response.headers):
        return exchange

    def spelled(name: str, reference: str) -> str:
        target = joined(exchange.request.url, reference) if PLACEHOLDER.search(reference) else None
        if target is None:
            return reference
        wanted = target.partition("#")[0]  # a request has no fragment
        found = next((url for url in _later_urls(recorded, order) if matches(wanted, url)), None)
        if found is None:
            return reference
        _, mark, fragment = reference.partition("#")
        return f"{reference.partition('?')[0]}?{found.partition('?')[2]}{mark}{fragment}"

    headers = Headers(replace_links(response.headers.pairs(), spelled))
    return replace(exchange, response=replace(response, headers=headers))


def _later_urls(recorded: Sequence[RecordedExchange], order: int) -> Iterator[str]:
    later: Iterable[RecordedExchange] = islice(recorded, order + 1, order + 1 + _FOLLOWS_WITHIN)
    return (one.exchange.request.url for one in later)


def _has_placeholder(headers: Headers) -> bool:
    return any(PLACEHOLDER.search(value) for name in LINK_HEADERS for value in headers.all(name))
