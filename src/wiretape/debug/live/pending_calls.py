"""The held calls of a live program and the user's decisions about them, as values.

An adapter holds the calls and carries out the decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, TypeAlias

from wiretape.debug.timeline import Stop
from wiretape.model.faults import Effect
from wiretape.model.http import Exchange
from wiretape.model.jsonvalue import Json

Mode: TypeAlias = Literal["replay", "record"]
# The user's choices for a held call; the adapter sets those that it supports.
Action: TypeAlias = Literal["serve", "live", "answer", "request", "inject", "delay", "drop", "accept"]
MOST_OUTPUT: Final = 2000  # lines of the program's output that are kept
WARN_AFTER: Final = 30.0  # seconds that a call is held before the user is warned of its client's timeout

# -- decisions ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Continue:
    """Release the call: to its answer, or with its answer to the program. `answer` replaces the known answer."""

    answer: Exchange | None = None


@dataclass(frozen=True, slots=True)
class SendLive:
    """Send the request to the real model."""


@dataclass(frozen=True, slots=True)
class Accept:
    """Answer a miss with the nearest recorded answer."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Replace the body of the request. The call is held again before it is sent."""

    body: Json


@dataclass(frozen=True, slots=True)
class Inject:
    """Replace or disturb the answer with a fault. `what`: the fault as the user typed it."""

    what: str
    effect: Effect


@dataclass(frozen=True, slots=True)
class Delay:
    """Release the call after some seconds."""

    seconds: float
    then: Continue


@dataclass(frozen=True, slots=True)
class Drop:
    """Close the connection without an answer."""


Decision: TypeAlias = Continue | SendLive | Accept | Rewrite | Inject | Delay | Drop
Release: TypeAlias = Callable[[Decision], None]

# -- calls -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A held call: before its request is sent, or with its answer before the program gets it.

    `recorded` is the answer it would get in a replay. `miss` explains why no recorded call answers it; `reason` why it
    is held. `client_timeout` is in seconds, if the client states it. `continue` releases only calls that were
    `shown` to the user.
    """

    number: int
    stop: Stop
    agent: str
    exchange: Exchange
    recorded: Exchange | None
    since: float
    actions: frozenset[Action]
    reason: str = ""
    client_timeout: float | None = None
    miss: str = ""
    edited: bool = False
    shown: bool = False

    @property
    def answered(self) -> bool:
        """Whether it is held with its answer."""
        return self.exchange.response is not None or self.exchange.ended is not None

    @property
    def answer(self) -> Exchange | None:
        """The answer that the program would get now."""
        return self.exchange if self.answered else self.recorded

    @property
    def release(self) -> Continue:
        """The decision that releases it, with its edited answer if it has one."""
        return Continue(self.answer if self.edited else None)


@dataclass(frozen=True, slots=True)
class OutputLine:
    """A line that the program printed. `call`: the last call that was answered before it."""

    call: int | None
    stream: Literal["out", "err"]
    text: str


@dataclass(frozen=True, slots=True)
class Stepping:
    """The next stops at which the program is held, apart from breakpoints. `answers`: at answers, too."""

    at: Callable[[Stop], bool]
    answers: bool = False


AT_NEXT_CALL = Stepping(lambda stop: stop.phase == "request")


class AnswerEditor(Protocol):
    """How answers are edited and faults are parsed. A higher layer implements it."""

    def said(self, exchange: Exchange) -> list[dict[str, Any]]:
        """The items of an answer, as the user edits them."""
        ...

    def edited(self, exchange: Exchange, wanted: Sequence[Any]) -> Exchange:
        """The exchange with these items as its answer. Raises UsageError."""
        ...

    def written(self, exchange: Exchange) -> str:
        """The body of the answer as text."""
        ...

    def rewritten(self, exchange: Exchange, text: str) -> Exchange:
        """The exchange with this body of the answer. Raises UsageError."""
        ...

    def fault(self, what: str) -> Effect:
        """Parse a fault without a target. Raises UsageError."""
        ...
