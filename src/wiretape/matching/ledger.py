"""What a replay session played: its outcomes, drift, and the recorded answers that are still owed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from wiretape.compare.difference import Difference, Tier
from wiretape.matching.recorded import RecordedExchange
from wiretape.matching.redacted_differences import without_secrets
from wiretape.matching.values import Answer, Miss, Outcome, Reference, Stray
from wiretape.model.call import ModelCall
from wiretape.model.common_prefix import CommonPrefixes
from wiretape.model.http import Exchange
from wiretape.tape.output_redactor import OutputRedactor
from wiretape.wire.base import Memo
from wiretape.wire.registry import Registry

Kept = TypeVar("Kept", Outcome, Miss, Stray)


@dataclass(slots=True)
class Drift:
    """A path at which requests differed, the first values there, and the calls in which the difference was new."""

    tier: Tier
    first: Difference
    minor: bool  # only an id, a spelling or a volatile setting differs; only the tier `exact` compares it
    calls: list[Reference] = field(default_factory=list)

    @property
    def where(self) -> str:
        return self.first.where


class Drifts:
    """The drift of a session by path, in the order of first appearance."""

    __slots__ = ("_by_place",)

    def __init__(self) -> None:
        self._by_place: dict[tuple[str, bool], Drift] = {}

    def add(self, answer: Answer, minor: Sequence[bool]) -> None:
        """Add the differences of an answer. `minor`: whether each of them is minor."""
        for difference, small in zip(answer.differences, minor, strict=True):
            place = (difference.where, small)
            drift = self._by_place.get(place)
            if drift is None:
                drift = self._by_place[place] = Drift(answer.tier, difference, small)
            drift.calls.append(answer.reference)

    def __iter__(self) -> Iterator[Drift]:
        return iter(self._by_place.values())


class PlayedCalls:
    """Decodes the recorded calls that were played. It shares no state with the session: another thread may use it."""

    def __init__(self, registry: Registry, sockets: Sequence[RecordedExchange]) -> None:
        self._registry = registry
        self._memo = Memo(CommonPrefixes().common)
        self._sockets = {one.reference.place: one for one in sockets}
        self._decoded: dict[int, tuple[Exchange, tuple[ModelCall, ...]]] = {}  # of WebSockets, which have many calls

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
        if known is None:  # the exchange is kept, so that no other one gets its id
            known = self._decoded[id(exchange)] = exchange, self._registry.calls_of(exchange, self._memo)
        return known[1]


class Ledger:
    """The outcomes of a session, in the order of its live requests."""

    def __init__(self, played: bytearray, output: OutputRedactor) -> None:
        """`played`: one byte for each recorded exchange; shared with the indexes. `output`: redacts outcomes."""
        self.outcomes: list[Outcome] = []
        self.drifts = Drifts()
        self.passed: dict[str, int] = {}  # connections by host that a person allowed
        self.output = output
        self.number = 0  # of the latest live request
        self._played = played
        self._owed: set[int] = set()  # orders of exchanges whose answer a person withheld

    def next_number(self) -> int:
        """Count one more live request."""
        self.number += 1
        return self.number

    def keep(self, outcome: Kept) -> Kept:
        """Redact an outcome, and note it."""
        outcome = without_secrets(outcome, self.output)
        self.outcomes.append(outcome)
        return outcome

    def replace(self, outcome: Outcome, other: Kept) -> Kept:
        """Note another outcome in the place of an earlier one."""
        other = without_secrets(other, self.output)
        place = next((place for place, one in enumerate(self.outcomes) if one is outcome), None)
        if place is not None:
            self.outcomes[place] = other
        return other

    def play(self, order: int) -> None:
        """Note that a recorded answer is given."""
        self._played[order] = True
        self._owed.discard(order)

    def withhold(self, order: int) -> None:
        """Leave a recorded answer for the next attempt."""
        self._owed.add(order)
        self._played[order] = False

    def owes(self, order: int) -> bool:
        """Whether the answer was withheld."""
        return order in self._owed

    @property
    def misses(self) -> list[Miss]:
        return [outcome for outcome in self.outcomes if isinstance(outcome, Miss)]
