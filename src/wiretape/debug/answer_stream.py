"""A call's answer as it came: what had been said of it after each event of its stream.

Every moment is decoded from the events that had come by then, by the wire format that decodes the whole: nothing is
split or guessed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

from wiretape.model.call import Message, ModelCall
from wiretape.model.http import Exchange, StreamBody
from wiretape.wire.base import Memo
from wiretape.wire.registry import Registry, default_registry


class AnswerStream:
    """`times`: for each event, when it had come, in milliseconds after the request was sent."""

    def __init__(self, times: Sequence[int], exchanges: Sequence[Exchange], which: int, registry: Registry) -> None:
        self.times = tuple(times)
        self._exchanges, self._which, self._registry = exchanges, which, registry

    def __len__(self) -> int:
        return len(self.times)

    @property
    def lasts_ms(self) -> int:
        return self.times[-1]

    def events_by(self, ms: int) -> int:
        """How many events had come by then."""
        return bisect_right(self.times, ms)

    def after(self, events: int) -> tuple[Message, ...]:
        """The answer as it was after so many events."""
        if events <= 0:
            return ()
        calls = self._registry.calls_of(self._exchanges[min(events, len(self)) - 1], Memo())
        response = calls[self._which].response if self._which < len(calls) else None
        return response.messages if response is not None else ()


def answer_stream(call: ModelCall, exchange: Exchange | None, registry: Registry | None = None) -> AnswerStream | None:
    """The stream that a call's answer came in; None where it came whole, or not at all."""
    if exchange is None:
        return None
    registry = registry or default_registry()
    if exchange.messages:
        return _of_socket(call, exchange, registry)
    response = exchange.response
    if response is None or not isinstance(response.body, StreamBody) or len(response.body.frames) < 2:
        return None
    times = [response.headers_at + ms - exchange.at for ms in response.body.ms]
    return AnswerStream(times, _Cut(exchange, list(range(1, len(times) + 1))), 0, registry)


def _of_socket(call: ModelCall, exchange: Exchange, registry: Registry) -> AnswerStream | None:
    cuts = [frame for frame in call.frames if exchange.messages[frame - 1].sender == "server"]
    if call.part is None or len(cuts) < 2:
        return None
    times = [exchange.messages[cut - 1].at - call.at for cut in cuts]
    return AnswerStream(times, _Cut(exchange, cuts), call.part - 1, registry)


class _Cut(Sequence[Exchange]):
    """The exchange as it was after each event; made when it is looked at."""

    def __init__(self, exchange: Exchange, cuts: Sequence[int]) -> None:
        self._exchange, self._cuts = exchange, cuts

    def __len__(self) -> int:
        return len(self._cuts)

    def __getitem__(self, place: int) -> Exchange:  # type: ignore[override]
        exchange, cut = self._exchange, self._cuts[place]
        if exchange.messages:
            return replace(exchange, messages=exchange.messages[:cut], close=None, ended=None)
        response = exchange.response
        assert response is not None
        assert isinstance(response.body, StreamBody)
        body = replace(response.body, frames=list(response.body.frames)[:cut], ms=list(response.body.ms)[:cut])
        whole = cut == len(self._cuts)
        return replace(exchange, response=replace(response, body=body), ended=exchange.ended if whole else None)
