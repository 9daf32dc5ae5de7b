"""Effects of injected faults. A replay applies them to calls (`--fault`), a debugger to a pending call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never

_RETRY_LATER: Final = frozenset({429, 503, 529})  # statuses with which providers send `retry-after`


@dataclass(frozen=True, slots=True)
class ErrorStatus:
    """An error status instead of the answer. `after`: seconds in its `retry-after`."""

    status: int
    after: float | None = None

    @property
    def headers(self) -> list[tuple[str, str]]:
        """`retry-after` in whole seconds; `retry-after-ms`, too, if the time has a fraction."""
        after = 1 if self.after is None and self.status in _RETRY_LATER else self.after
        if after is None:
            return []
        exact = [] if after == int(after) else [("retry-after-ms", str(round(after * 1000)))]
        return [("retry-after", str(-int(-after // 1))), *exact]


@dataclass(frozen=True, slots=True)
class Cut:
    """The answer is cut after event `event`; None: half way."""

    event: int | None = None


@dataclass(frozen=True, slots=True)
class Reset:
    """The connection is reset after event `event`; None: before the answer."""

    event: int | None = None


@dataclass(frozen=True, slots=True)
class Stall:
    """The answer stalls for `ms` after event `event`. `event` None: before the answer. `ms` None: for ever."""

    event: int | None = None
    ms: float | None = None


@dataclass(frozen=True, slots=True)
class Slow:
    """Every recorded pause is multiplied by `factor`."""

    factor: float


Effect: TypeAlias = ErrorStatus | Cut | Reset | Stall | Slow


def stalls(effect: Effect) -> bool:
    """Whether the answer never continues."""
    return isinstance(effect, Stall) and effect.ms is None


def breaks(effect: Effect) -> bool:
    """Whether it replaces the answer, which is then left for the next attempt."""
    match effect:
        case Stall():
            return stalls(effect)
        case Slow():
            return False
        case ErrorStatus() | Cut() | Reset():
            return True
        case _:
            assert_never(effect)
