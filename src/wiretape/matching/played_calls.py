"""The recorded model calls that were played, decoded for a person to see: a line of its own for each answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from wiretape.compare.common_prefix import CommonPrefixes
from wiretape.matching.recorded import RecordedExchange
from wiretape.matching.values import Answer
from wiretape.model.call import ModelCall
from wiretape.model.http import Exchange
from wiretape.wire.base import Memo
from wiretape.wire.registry import Registry


class PlayedCalls:
    """Remembers apart from the session that it shows, and so may be asked on another thread than that; on one."""

    def __init__(self, registry: Registry, sockets: Sequence[RecordedExchange]) -> None:
        self._registry = registry
        self._memo = Memo(CommonPrefixes().common)
        self._sockets = {one.reference.place: one for one in sockets}
        self._decoded: dict[int, tuple[Exchange, tuple[ModelCall, ...]]] = {}  # of WebSockets, which hold many calls

    def call_of(self, answer: Answer) -> ModelCall | None:
        """The call that an answer plays; None for other answers."""
        calls = self._calls(answer.exchange)
        if not calls:
            return None
        socket = self._sockets.get(answer.reference.place) if len(calls) > 1 else None
        numbers = [call.number for call in socket.calls] if socket is not None else []
        at = numbers.index(answer.reference.call) if answer.reference.call in numbers else 0
        return replace(calls[at], number=answer.reference.call or 0)

    def _calls(self, exchange: Exchange) -> tuple[ModelCall, ...]:
        if not exchange.messages:
            return self._registry.calls_of(exchange, self._memo)
        known = self._decoded.get(id(exchange))
        if known is None:  # it is kept: so no other exchange gets its id
            known = self._decoded[id(exchange)] = exchange, self._registry.calls_of(exchange, self._memo)
        return known[1]
