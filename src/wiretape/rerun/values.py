"""What a rerun says: each request that it built beside the recorded one, and where the runs part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from wiretape.compare.difference import Difference, Tier
from wiretape.model.call import ToolCall, ToolResult
from wiretape.model.http import Request
from wiretape.model.jsonvalue import JsonObject
from wiretape.rerun.growth_walk import Given

Outcome: TypeAlias = Literal[
    "equal",  # what the format makes of the call before it
    "differs",
    "given",  # taken from the tape as it is: a thread's first request, a side call, a format that does not grow
    "new",  # a request that the recorded run did not make
    "not reached",  # a recorded request that this run did not make
    "not sent",  # a recorded request beside the loop, which a live rerun leaves out
]


@dataclass(frozen=True, slots=True)
class Row:
    """One call of a rerun. `number` is the recorded call's, None for a new one."""

    number: int | None
    thread: int
    agent: str
    format: str
    outcome: Outcome
    note: str = ""
    tier: Tier = Tier.EXACT
    differences: tuple[Difference, ...] = ()
    given: tuple[Given, ...] = ()
    asks: tuple[ToolCall, ...] = ()  # the tools that the answer asks for
    said: str = ""  # else what it says
    parts: str = ""  # why the runs part at this call's answer; empty where they do not


@dataclass(frozen=True, slots=True, eq=False)
class Send:
    """A request that the scheduler wants answered. Feed what came to `Rerun.answered`."""

    number: int | None
    thread: int
    request: Request
    body: JsonObject


NOTHING_ANSWERS: Final = "nothing answers"  # how it begins why a thread stopped at a tool that nobody has results of


@dataclass(frozen=True, slots=True)
class Stopped:
    """A thread cannot go on: a tool call that nothing answers, say."""

    thread: int
    number: int | None  # the call that it stopped after
    why: str


ToolHook: TypeAlias = Callable[[ToolCall, ToolResult | None], ToolResult | None]
"""Given a tool call and what the tape has for it, what the tool says; None: nobody knows."""

BodyHook: TypeAlias = Callable[[int | None, JsonObject], JsonObject]
"""Given a recorded call's number (None: a new call) and the body that was built, the body to send."""
