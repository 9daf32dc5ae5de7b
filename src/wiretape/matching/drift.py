"""What was played although it differed: grouped by place, because what drifted once stands in the history for ever."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from wiretape.compare.difference import Difference, Tier
from wiretape.matching.values import Answer, Reference


@dataclass(slots=True)
class Drift:
    """One place that differed, with both values as they were first seen, and the calls that it was new in."""

    tier: Tier
    first: Difference
    minor: bool  # an id, a spelling, something volatile: what no tier but `exact` looks at
    calls: list[Reference] = field(default_factory=list)

    @property
    def where(self) -> str:
        return self.first.where


class Drifts:
    """All drift of a session, in the order of first appearance."""

    __slots__ = ("_by_place",)

    def __init__(self) -> None:
        self._by_place: dict[tuple[str, bool], Drift] = {}

    def add(self, answer: Answer, minor: Sequence[bool]) -> None:
        """`minor` says of each difference whether it is."""
        for difference, small in zip(answer.differences, minor, strict=True):
            place = (difference.where, small)
            drift = self._by_place.get(place)
            if drift is None:
                drift = self._by_place[place] = Drift(answer.tier, difference, small)
            drift.calls.append(answer.reference)

    def __iter__(self) -> Iterator[Drift]:
        return iter(self._by_place.values())
