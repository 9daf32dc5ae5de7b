"""What a session answers from, and what its parts share when they compare live requests with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wiretape.replay.beginnings import Beginnings
from wiretape.replay.mask import Masker
from wiretape.replay.recorded import Recorded, recorded_exchanges
from wiretape.wire.base import Memo
from wiretape.wire.registry import Registry

if TYPE_CHECKING:
    from wiretape.tape.reader import Tape


@dataclass(eq=False)
class Recording:
    """Exchanges of all tapes, by their order, and apart from them the WebSocket connections, by theirs."""

    tapes: Sequence[Tape]
    registry: Registry
    masker: Masker
    exchanges: Sequence[Recorded] = field(init=False)
    sockets: Sequence[Recorded] = field(init=False)
    played: bytearray = field(init=False)  # which exchanges were given as an answer
    beginnings: Beginnings = field(default_factory=Beginnings)
    memo: Memo = field(init=False)

    def __post_init__(self) -> None:
        self.exchanges, self.sockets = recorded_exchanges(self.tapes, self.registry)
        self.played = bytearray(len(self.exchanges))
        self.memo = Memo(self.beginnings.common)
