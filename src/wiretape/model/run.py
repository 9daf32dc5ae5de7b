"""A run: which call continues which, who made it, and for which turn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from wiretape.model.call import ModelCall, ToolCall, ToolResult

LinkBasis: TypeAlias = Literal["header", "id", "data_flow", "order"]
# certain: the client or an id states the link; likely: the same text is on both sides; possible: only the order fits.
Certainty: TypeAlias = Literal["certain", "likely", "possible"]
LinkKind: TypeAlias = Literal[
    "started",  # a tool call started a subagent
    "fork",  # a subagent that starts with its parent's history; or a second continuation of a call
    "handoff",  # another agent takes the conversation over
    "message",  # from a parent to its subagent. Without `to_call` it did not arrive on this tape
    "report",  # from a subagent while it works
    "closing",  # a subagent's last answer, as a separate message
    "result",  # a subagent's last answer, as the result of the tool call that started it
    "listed",  # an entry of a list of agents, compared with the tape
    "interrupted",
    "compacted",  # a history that continues from its own summary
]
AgentOrigin: TypeAlias = Literal["root", "subagent", "fork", "handoff"]
CauseKind: TypeAlias = Literal[
    "turn_start",  # first call of the turn: answers the user's message
    "tool_results",  # answers tool calls of an earlier call of the thread
    "subagent",  # a subagent's first call, or its call after a message of its parent
    "report",  # receives the report of a subagent, or has another agent's answer in its history
    "handoff",  # continues a conversation that another agent handed over
    "retry",  # repeats a request after a failure
    "continuation",  # continues without new user text or tool results (pause, truncated answer, reminder)
    "side_call",  # outside the loop: title, router, token count
    "unknown",
]


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One tool call and its result. `result` is None if no later request of the thread has it."""

    call_number: int  # the model call that requested it
    index: int  # position among that call's tool calls
    call: ToolCall
    result: ToolResult | None = None
    result_call: int | None = None  # the first model call whose request has the result
    agent: int | None = None  # the subagent that this tool call started, if any
    exchange: int | None = None  # the tool server's exchange, if it is on the tape
    ran_ms: int | None = None  # the tool server's time


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a model call was made."""

    kind: CauseKind
    call: int | None = None  # the call that caused it
    tools: tuple[str, ...] = ()  # names of the tool calls that it answers, or that started it
    basis: LinkBasis | None = None  # the evidence for the link to another agent
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """A start, message or result from one agent to another, or a thread that continues another one."""

    kind: LinkKind
    from_call: int | None  # None: the call that sent it is not on the tape
    to_call: int | None
    from_agent: int | None
    to_agent: int | None  # None: an agent that made no call on the tape
    basis: LinkBasis
    certainty: Certainty
    tool: str | None = None  # the name of the tool that transported it
    tool_index: int | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Agent:
    """The root agent or a subagent. Agent 0 is the first root agent; `parent` is None for roots.

    The `parent` of an agent that took a conversation over is the agent that handed it over.
    """

    number: int
    name: str  # "root", or its name on the wire, else the tool that started it
    parent: int | None = None
    started_by: int | None = None  # call number
    started_tool: str | None = None
    basis: LinkBasis | None = None
    origin: AgentOrigin = "root"


@dataclass(frozen=True, slots=True)
class Thread:
    """Calls that continue one another's context. `from_call`: the call that it forks from or compacts, if any."""

    number: int
    agent: int
    calls: tuple[int, ...]
    from_call: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One model call and its position in the run.

    `new_from`: index of the first request message that this call adds to its thread (0 for a thread's first call).
    """

    call: ModelCall
    agent: int
    thread: int
    turn: int | None  # None: belongs to no turn
    cause: Cause
    new_from: int = 0
    links: tuple[Link, ...] = ()  # links from other agents to this call


@dataclass(frozen=True, slots=True)
class Turn:
    """From one user message to the answer that ends it, subagents' calls included."""

    number: int
    user: str
    steps: tuple[Step, ...]
    answer: str | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """All threads, turns and agents of a tape. `steps` has every model call, in order of number."""

    steps: tuple[Step, ...]
    turns: tuple[Turn, ...]
    agents: tuple[Agent, ...]
    threads: tuple[Thread, ...]
    tool_uses: tuple[ToolUse, ...]
    side_calls: tuple[Step, ...] = ()
    other_exchanges: tuple[int, ...] = field(default=())  # exchanges that are not model calls
    links: tuple[Link, ...] = ()  # all links, ordered by `from_call`
