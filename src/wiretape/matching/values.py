"""The values of a replay session: options, live requests, and their outcomes (answer, fault, miss, stray)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from wiretape.compare.difference import Difference, Tier
from wiretape.matching.faults.apply import Fault
from wiretape.model.http import Exchange, Headers
from wiretape.tape.output_redactor import OutputRedactor

MissReason: TypeAlias = Literal["never recorded", "already played", "diverged", "not playable", "not opened", "fault"]


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """How a session matches, and how its messages name things."""

    tier: Tier = Tier.MASKED  # the loosest tier allowed
    repeat: bool = False  # play a recorded answer again when all that match were played
    mask: tuple[str, ...] = ()  # the user's own patterns of volatile text
    faults: tuple[Fault, ...] = ()
    names: tuple[str, ...] = ()  # of the tapes, in messages; their paths by default
    program: str = "…"  # the program's command line, in the commands that fix a miss
    miss_fix: Callable[[MissReason], str] | None = None  # the last lines of a miss; a `wiretape` command by default
    output: OutputRedactor | None = None  # redacts what is printed


@dataclass(frozen=True, slots=True)
class LiveRequest:
    """A request of the program. Without a host in `url`, any recorded host matches."""

    method: str
    url: str
    headers: Headers = field(default_factory=Headers)
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Reference:
    """The name of a recorded exchange: `call 3` of a tape, or `x7` if it is not a model call."""

    tape: str
    exchange: int
    call: int | None
    what: str  # "POST /v1/chat/completions"

    @property
    def place(self) -> tuple[str, int]:
        """Tape and exchange, without the call: a WebSocket may have many calls."""
        return self.tape, self.exchange

    def __str__(self) -> str:
        return f"call {self.call}" if self.call is not None else f"x{self.exchange}"


@dataclass(frozen=True, slots=True)
class Answer:
    """The recorded exchange that answers a live request.

    `differences`: those that no earlier answer of the session had. A difference in the history is listed only once.
    `faults`: those that delay it.
    """

    number: int  # of the live request, from 1
    reference: Reference
    exchange: Exchange
    tier: Tier
    differences: tuple[Difference, ...] = ()
    repeated: bool = False
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class Injected:
    """A fault instead of a recorded answer, which the next attempt gets. `exchange`: the answer that it changes."""

    number: int
    reference: Reference
    exchange: Exchange
    fault: Fault


@dataclass(frozen=True, slots=True)
class Miss:
    """No recorded call answers. `message` is for people; `headers` and `body` are the error response for an SDK."""

    number: int
    what: str
    reason: MissReason
    message: str
    nearest: Reference | None = None
    differences: tuple[Difference, ...] = ()
    status: int = 400
    headers: Headers = field(default_factory=Headers)
    body: bytes = b""
    mend: str = ""  # the command at the end of `message`, if it can be copied


@dataclass(frozen=True, slots=True)
class Stray:
    """A request that is neither a model call nor recorded, such as telemetry. It gets 404, which is not a failure."""

    number: int
    what: str
    note: str = ""


Outcome: TypeAlias = Answer | Injected | Miss | Stray
