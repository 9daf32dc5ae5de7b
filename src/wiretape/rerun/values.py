"""Values of a rerun: the requests that it builds, the outcome of each call, and where the runs diverge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from wiretape.compare.difference import Difference, Tier
from wiretape.model.call import ToolCall, ToolResult
from wiretape.model.http import Request
from wiretape.model.jsonvalue import JsonObject
from wiretape.rerun.history_comparison import ProgramChoice

Outcome: TypeAlias = Literal[
    "equal",  # the recorded request is what the format implies from the call before it
    "differs",
    "given",  # taken from the tape: a thread's first request, a side call, a format without a builder
    "new",  # the recorded run has no such request
    "not reached",  # a recorded request that this run did not send
    "not sent",  # a recorded request outside the loop, which a live rerun omits
]


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """One call of a rerun. `number` is that of the recorded call, None for a new one."""

    number: int | None
    thread: int
    agent: str
    format: str
    outcome: Outcome
    note: str = ""
    tier: Tier = Tier.EXACT
    differences: tuple[Difference, ...] = ()
    given: tuple[ProgramChoice, ...] = ()
    asks: tuple[ToolCall, ...] = ()  # the tools that the answer calls
    said: str = ""  # the answer's text
    parts: str = ""  # why the runs diverge at this call's answer; "" if they do not


@dataclass(frozen=True, slots=True, eq=False)
class PlannedRequest:
    """A request that the scheduler wants to send. Pass its response to `Rerun.answered`."""

    number: int | None
    thread: int
    request: Request
    body: JsonObject


NO_RESULT: Final = "no recorded result for"  # start of `StoppedThread.why` if a tool's result is unknown


@dataclass(frozen=True, slots=True)
class StoppedThread:
    """A thread that cannot continue, for example because a tool's result is unknown."""

    thread: int
    number: int | None  # the last call before it stopped
    why: str


ToolHook: TypeAlias = Callable[[ToolCall, ToolResult | None], ToolResult | None]
"""Takes a tool call and its recorded result, and returns the result to use; None if it is unknown."""

BodyHook: TypeAlias = Callable[[int | None, JsonObject], JsonObject]
"""Takes a recorded call's number (None for a new call) and the built body, and returns the body to send."""
