"""A run: which call continues which, who made it, and for which turn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from wiretape.model.call import ModelCall, ToolCall, ToolResult

LinkBasis: TypeAlias = Literal["header", "id", "data_flow", "order"]
# How sure a link is. certain: the client says so, or an id does; likely: what was said stands on the other side, too;
# possible: nothing but the order speaks for it.
Certainty: TypeAlias = Literal["certain", "likely", "possible"]
LinkKind: TypeAlias = Literal[
    "started",  # a tool call set a subagent going
    "fork",  # the same, with the history so far; or a second way on from a call
    "handoff",  # another agent goes on with the conversation
    "message",  # a parent's words: its subagent's next turn. Without `to_call` it never arrived on this tape
    "report",  # what a subagent told while at work
    "closing",  # what a subagent said last, as a message of its own
    "result",  # the same, as the result of the tool call that started it
    "listed",  # what a list of agents said, against what the tape knows
    "interrupted",
    "compacted",  # a history that goes on from a summary of itself
]
AgentOrigin: TypeAlias = Literal["root", "subagent", "fork", "handoff"]
CauseKind: TypeAlias = Literal[
    "turn_start",  # first call of the turn: answers the user's message
    "tool_results",  # answers tool calls of an earlier call of the thread
    "subagent",  # a subagent's first call, started by a tool call of another agent; or its parent's next message
    "report",  # hears what another agent said: a subagent, or one whose answer its history holds
    "handoff",  # goes on where another agent handed the conversation over
    "retry",  # the same request again after a failure
    "continuation",  # goes on without new user text or tool results (pause, truncated answer, reminder)
    "side_call",  # outside the loop: title, router, token count
    "unknown",
]


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One tool call and its result, paired. `result` is None when no later request of the thread carries it."""

    call_number: int  # the model call that asked for it
    index: int  # position among that call's tool calls
    call: ToolCall
    result: ToolResult | None = None
    result_call: int | None = None  # the first model call whose request carries the result
    agent: int | None = None  # the subagent that this tool call started, if any
    exchange: int | None = None  # the exchange on which the tool's server got it, if that is on the tape
    ran_ms: int | None = None  # how long the server took


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a model call was made."""

    kind: CauseKind
    call: int | None = None  # the call that led to it
    tools: tuple[str, ...] = ()  # names of the tool calls that it answers, or that started it
    basis: LinkBasis | None = None  # what the link to another agent rests on
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """What goes from one agent to another, or from a thread to the one that follows it, and what says so."""

    kind: LinkKind
    from_call: int | None  # None: the call that sent it is not on the tape
    to_call: int | None
    from_agent: int | None
    to_agent: int | None  # None: an agent that made no call on the tape
    basis: LinkBasis
    certainty: Certainty
    tool: str | None = None  # the tool call that carried it
    tool_index: int | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Agent:
    """Who speaks in a thread. Agent 0 is the first root agent; `parent` is None for roots.

    `parent` of an agent that was handed a conversation is the agent that handed it over.
    """

    number: int
    name: str  # "root", or what the wire calls it, else the tool that started it
    parent: int | None = None
    started_by: int | None = None  # call number
    started_tool: str | None = None
    basis: LinkBasis | None = None
    origin: AgentOrigin = "root"


@dataclass(frozen=True, slots=True)
class Thread:
    """Calls that continue one another's context. `from_call`: the call it forked from or compacted, if any."""

    number: int
    agent: int
    calls: tuple[int, ...]
    from_call: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One model call in its place in the run.

    `new_from`: index of the first request message that this call adds to its thread (0 for a thread's first call).
    """

    call: ModelCall
    agent: int
    thread: int
    turn: int | None  # None: belongs to no turn
    cause: Cause
    new_from: int = 0
    links: tuple[Link, ...] = ()  # what reached this call from elsewhere


@dataclass(frozen=True, slots=True)
class Turn:
    """From one user message to the answer that ends it, subagents' calls included."""

    number: int
    user: str
    steps: tuple[Step, ...]
    answer: str | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """Everything a tape's model calls show. `steps` holds every model call, in order of number."""

    steps: tuple[Step, ...]
    turns: tuple[Turn, ...]
    agents: tuple[Agent, ...]
    threads: tuple[Thread, ...]
    tool_uses: tuple[ToolUse, ...]
    side_calls: tuple[Step, ...] = ()
    other_exchanges: tuple[int, ...] = field(default=())  # exchanges that are no model calls
    links: tuple[Link, ...] = ()  # everything between agents, by the call it came from
