"""A program at work, as values: the calls that wait, what it printed, and where it is held next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, TypeAlias

from wiretape.debug.timeline import Stop
from wiretape.model.faults import Effect
from wiretape.model.http import Exchange
from wiretape.model.jsonvalue import Json

# What can be done with a held call; a door says which of them it can do.
Action: TypeAlias = Literal["serve", "live", "answer", "request", "inject", "delay", "drop", "accept"]


@dataclass(frozen=True, slots=True)
class Continue:
    """It goes on: to its answer, or with its answer to the program. `answer`: another one than was known."""

    answer: Exchange | None = None


@dataclass(frozen=True, slots=True)
class SendLive:
    """The real model is asked, whatever was recorded."""


@dataclass(frozen=True, slots=True)
class Accept:
    """The nearest recorded answer is given to a request that missed."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The request goes on with another body. It is asked about again before it does."""

    body: Json


@dataclass(frozen=True, slots=True)
class Inject:
    """A fault in the place of the answer, or in it. `what`: as the person wrote it."""

    what: str
    effect: Effect


@dataclass(frozen=True, slots=True)
class Delay:
    """It goes on after so many seconds."""

    seconds: float
    then: Continue


@dataclass(frozen=True, slots=True)
class Drop:
    """The connection ends without an answer."""


Decision: TypeAlias = Continue | SendLive | Accept | Rewrite | Inject | Delay | Drop
Release: TypeAlias = Callable[[Decision], None]
Mode: TypeAlias = Literal["replay", "record"]


@dataclass(frozen=True, slots=True)
class Stepping:
    """Where a program is held next, breakpoints apart. `answers`: with an answer, too."""

    at: Callable[[Stop], bool]
    answers: bool = False


AT_NEXT_CALL = Stepping(lambda stop: stop.phase == "request")
MOST_OUTPUT: Final = 2000  # lines of the program that are kept
WARN_AFTER: Final = 30.0  # seconds that a call waits before its client's patience is spoken of


class AnswerEditor(Protocol):
    """What editing an answer takes, and a fault's spelling: known to the layer that compares live with recorded."""

    def said(self, exchange: Exchange) -> list[dict[str, Any]]: ...
    def edited(self, exchange: Exchange, wanted: Sequence[Any]) -> Exchange: ...
    def written(self, exchange: Exchange) -> str: ...
    def rewritten(self, exchange: Exchange, text: str) -> Exchange: ...
    def fault(self, what: str) -> Effect: ...


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call that waits. `number` is the call's; `exchange` as far as it is known; `recorded`: what would answer it.

    `patience`: after how many seconds its client gives up, if it says so. `miss`: no recorded call answers, and how it
    differs. `reason`: why it is held.
    """

    number: int
    stop: Stop
    agent: str
    exchange: Exchange
    recorded: Exchange | None
    since: float
    actions: frozenset[Action]
    reason: str = ""
    patience: float | None = None
    miss: str = ""
    edited: bool = False
    shown: bool = False  # the person knows of it: what was not shown is not let go by a mere `continue`

    @property
    def answered(self) -> bool:
        """Whether it waits with its answer, and not before its request."""
        return self.exchange.response is not None or self.exchange.ended is not None

    @property
    def answer(self) -> Exchange | None:
        """What the program would get now."""
        return self.exchange if self.answered else self.recorded


@dataclass(frozen=True, slots=True)
class OutputLine:
    """A line that the program printed, after call `call` was answered."""

    call: int | None
    stream: Literal["out", "err"]
    text: str
