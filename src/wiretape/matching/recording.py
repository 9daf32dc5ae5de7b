"""What a session answers from, and what its parts share when they compare live requests with it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from wiretape.compare.common_prefix import CommonPrefixes
from wiretape.compare.mask import Masker
from wiretape.matching.recorded import RecordedExchange, recorded_exchanges
from wiretape.wire.base import Memo
from wiretape.wire.registry import Registry

if TYPE_CHECKING:
    from wiretape.tape.reading.reader import Tape


@dataclass(eq=False)
class ReplaySource:
    """Exchanges of all tapes, by their order, and apart from them the WebSocket connections, by theirs."""

    tapes: Sequence[Tape]
    registry: Registry
    masker: Masker
    exchanges: Sequence[RecordedExchange] = field(init=False)
    sockets: Sequence[RecordedExchange] = field(init=False)
    played: bytearray = field(init=False)  # which exchanges were given as an answer
    beginnings: CommonPrefixes = field(default_factory=CommonPrefixes)
    memo: Memo = field(init=False)

    def __post_init__(self) -> None:
        self.exchanges, self.sockets = recorded_exchanges(self.tapes, self.registry)
        self.played = bytearray(len(self.exchanges))
        self.memo = Memo(self.beginnings.common)

    @cached_property
    def groups(self) -> Mapping[Hashable, Sequence[int]]:
        """The orders of exchanges that are alike, for what looks for the nearest one.

        Model calls by the name of their format, and by name and the last part of their path. Other exchanges by
        method and path, and by method, path and host.
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
