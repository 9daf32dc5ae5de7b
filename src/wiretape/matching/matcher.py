"""Find the recorded exchange that answers a live request: normalize it, look it up by key, break ties."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wiretape.compare.difference import Difference, Differences, Tier, differences_of_addresses
from wiretape.matching.async_messages.alignment import Alignment
from wiretape.matching.async_messages.match import AsyncMatch
from wiretape.matching.id_map import IdMap
from wiretape.matching.live import LiveReader
from wiretape.matching.lookup.index import Probe
from wiretape.matching.lookup.tie_break import TieBreak
from wiretape.matching.recorded import RecordedExchange, ReplaySource, restored
from wiretape.matching.tier_indexes import TierIndexes
from wiretape.matching.values import LiveRequest
from wiretape.model.http import Exchange


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """A recorded exchange that answers a live request. `moved`: only positions of asynchronous messages differ."""

    recorded: RecordedExchange
    tier: Tier
    repeated: bool = False
    moved: AsyncMatch | None = None


@dataclass(frozen=True, slots=True, eq=False)
class NoMatch:
    """No recorded exchange answers. `already`: the one that would, had it not been played. `note`: why none does."""

    already: RecordedExchange | None = None
    note: str = ""


class Matcher:
    """Matches live requests with the exchanges of tapes. Tiers are tried strictest first."""

    def __init__(self, source: ReplaySource, loosest: Tier, may_repeat: Callable[[int], bool]) -> None:
        """`may_repeat`: whether the exchange of this order may be played again."""
        self.tiers = TierIndexes(source, loosest)
        self.ids = IdMap(source.prefixes)
        self._source = source
        self._loosest = loosest
        self._may_repeat = may_repeat
        self._reader = LiveReader(source.registry, self.ids, source.prefixes)
        self._differences = Differences(source.prefixes)
        self._alignment = Alignment(self._differences, source.memo)
        self._tie_break = TieBreak(source.exchanges, source.memo, lambda: self.tiers.runs)
        self.tiers.exact  # noqa: B018  every request needs it: it is built before the first one

    def probe(self, request: LiveRequest) -> Probe:
        """The live request in the forms that the tiers compare."""
        return self._reader.probe(request)

    def find(self, probe: Probe) -> Match | NoMatch:
        """The unplayed exchange of the strictest tier that answers; else one that may be played again."""
        found = self._by_key(probe)
        if found is not None:
            return found
        moved = self.tiers.moved.find(probe) if self._loosest >= Tier.MASKED else None
        if moved is not None and not moved.already:
            return Match(moved.call.recorded, Tier.MASKED, moved.again, moved)
        if self._loosest is Tier.POSITION:
            return self._by_position(probe)
        return self._played(probe, moved.call.recorded if moved is not None else None)

    def _by_key(self, probe: Probe) -> Match | None:
        for tier, index in self.tiers:
            key = index.place(probe).key
            order = index.pool.peek(key, probe.address.host, probe.strict)
            if order is None:
                continue
            if probe.format is not None and index.pool.has_several(key):
                equal = index.pool.waiting(key, probe.address.host)
                order = self._tie_break.choose(equal, probe) if len(equal) > 1 else order
            return Match(self._source.exchanges[order], tier)
        return None

    def _by_position(self, probe: Probe) -> Match | NoMatch:
        found = self.tiers.positions.find(probe)
        if found.recorded is not None:
            return Match(found.recorded, Tier.POSITION)
        played = self._played(probe, found.already)
        return NoMatch(note=found.note) if found.note and isinstance(played, NoMatch) else played

    def _played(self, probe: Probe, already: RecordedExchange | None) -> Match | NoMatch:
        """The played exchange that answers, if it may be played again."""
        for tier, index in self.tiers:
            order = index.pool.last_played(index.place(probe).key, probe.address.host, probe.strict)
            if order is not None:
                recorded = self._source.exchanges[order]
                return Match(recorded, tier, repeated=True) if self._may_repeat(order) else NoMatch(recorded)
        if already is not None and self._may_repeat(already.order):
            return Match(already, Tier.MASKED, repeated=True)
        return NoMatch(already)

    def accept(self, match: Match, probe: Probe) -> tuple[Difference, ...]:
        """Note that a match is played for a live request: its ids are learned. Returns what differs."""
        differing = self._compare(match, probe) if match.tier is not Tier.EXACT else ()
        self._tie_break.note(match.recorded, probe)
        if self._loosest is Tier.POSITION:
            self.tiers.positions.note(match.recorded, probe)
        return differing

    def _compare(self, match: Match, probe: Probe) -> tuple[Difference, ...]:
        """Differences of the addresses and of the bodies."""
        recorded = match.recorded.probe
        where = differences_of_addresses(recorded.address, probe.address)
        if match.moved is None:
            differing = list(self._differences.between(recorded.value, probe.value))
            self.ids.learn(differing)
            return (*where, *differing)
        differing, elsewhere = self._alignment.compare(match.moved, probe)
        self.ids.learn(differing)
        self.tiers.moved.note(match.moved)
        return (*where, *differing, *elsewhere)

    def answer_of(self, recorded: RecordedExchange) -> Exchange:
        """The recorded exchange with live ids, and with the links that redaction took from it."""
        return restored(self.ids.forward(recorded.exchange), self._source.exchanges, recorded.order)
