"""A recorded answer event by event: the decoded messages after each event of its stream.

Each state is decoded by the call's own wire format from the events received so far.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

from wiretape.model.call import Message, ModelCall
from wiretape.model.http import Exchange, StreamBody
from wiretape.wire.base import Memo
from wiretape.wire.registry import default_registry


class AnswerStream:
    """The events of an answer. `times`: when each arrived, in milliseconds after the request was sent."""

    def __init__(self, times: Sequence[int], exchanges: Sequence[Exchange], which: int) -> None:
        self.times = tuple(times)
        self._exchanges, self._which = exchanges, which

    def __len__(self) -> int:
        return len(self.times)

    @property
    def lasts_ms(self) -> int:
        return self.times[-1]

    def events_by(self, ms: int) -> int:
        """How many events had arrived `ms` after the request."""
        return bisect_right(self.times, ms)

    def after(self, events: int) -> tuple[Message, ...]:
        """The messages decoded from the first `events` events."""
        if events <= 0:
            return ()
        calls = default_registry().calls_of(self._exchanges[min(events, len(self)) - 1], Memo())
        response = calls[self._which].response if self._which < len(calls) else None
        return response.messages if response is not None else ()


def answer_stream(call: ModelCall, exchange: Exchange | None) -> AnswerStream | None:
    """The stream of a call's answer; None if the answer was not streamed."""
    if exchange is None:
        return None
    if exchange.messages:
        return _of_socket(call, exchange)
    response = exchange.response
    if response is None or not isinstance(response.body, StreamBody) or len(response.body.frames) < 2:
        return None
    times = [response.headers_at + ms - exchange.at for ms in response.body.ms]
    return AnswerStream(times, _Cut(exchange, list(range(1, len(times) + 1))), 0)


def _of_socket(call: ModelCall, exchange: Exchange) -> AnswerStream | None:
    cuts = [frame for frame in call.frames if exchange.messages[frame - 1].sender == "server"]
    if call.part is None or len(cuts) < 2:
        return None
    times = [exchange.messages[cut - 1].at - call.at for cut in cuts]
    return AnswerStream(times, _Cut(exchange, cuts), call.part - 1)


class _Cut(Sequence[Exchange]):
    """The exchange after each event, built on access."""

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
