"""What a person decides of a call that waits, as plain values: the door that holds the call carries them out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from wiretape.model.faults import Effect
from wiretape.model.http import Exchange
from wiretape.model.jsonvalue import Json

# What can be done with a held call; a door says which of them it can do.
Way: TypeAlias = Literal["serve", "live", "answer", "request", "inject", "delay", "drop", "accept"]


@dataclass(frozen=True, slots=True)
class Go:
    """It goes on: to its answer, or with its answer to the program. `answer`: another one than was known."""

    answer: Exchange | None = None


@dataclass(frozen=True, slots=True)
class AskLive:
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
    then: Go


@dataclass(frozen=True, slots=True)
class Drop:
    """The connection ends without an answer."""


Decision: TypeAlias = Go | AskLive | Accept | Rewrite | Inject | Delay | Drop
