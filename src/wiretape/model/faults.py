"""What a fault makes of an answer. A replay aims them at calls (`--fault`), a debugger gives one to a held call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never

_RETRY_LATER: Final = frozenset({429, 503, 529})  # what providers send `retry-after` with


@dataclass(frozen=True, slots=True)
class ErrorStatus:
    """An error instead of the answer. `after`: seconds that the client is told to wait."""

    status: int
    after: float | None = None

    @property
    def headers(self) -> list[tuple[str, str]]:
        """What tells the client when to ask again; whole seconds for all, milliseconds for those who read them."""
        after = 1 if self.after is None and self.status in _RETRY_LATER else self.after
        if after is None:
            return []
        exact = [] if after == int(after) else [("retry-after-ms", str(round(after * 1000)))]
        return [("retry-after", str(-int(-after // 1))), *exact]


@dataclass(frozen=True, slots=True)
class Cut:
    """The answer breaks off after its event `event`; None: half way."""

    event: int | None = None


@dataclass(frozen=True, slots=True)
class Reset:
    """The connection is reset after event `event`; None: before the answer begins."""

    event: int | None = None


@dataclass(frozen=True, slots=True)
class Stall:
    """Nothing comes for `ms` after event `event`; None: before the answer begins, and until the client goes."""

    event: int | None = None
    ms: float | None = None


@dataclass(frozen=True, slots=True)
class Slow:
    """Every recorded pause is so many times as long."""

    factor: float


Effect: TypeAlias = ErrorStatus | Cut | Reset | Stall | Slow


def stalls(effect: Effect) -> bool:
    """Whether nothing more comes, for as long as anybody waits."""
    return isinstance(effect, Stall) and effect.ms is None


def breaks(effect: Effect) -> bool:
    """Whether it stands in the answer's place: a recorded answer is left for the next attempt."""
    match effect:
        case Stall():
            return stalls(effect)
        case Slow():
            return False
        case ErrorStatus() | Cut() | Reset():
            return True
        case _:
            assert_never(effect)
