"""The JSON of `wiretape stats --json`. Numbers come from the wire; null means unknown."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from wiretape.model.run import AgentOrigin, CauseKind, Certainty, LinkBasis, LinkKind
from wiretape.model.wording import plural

UNKNOWN = "unknown tokens"


class Report(BaseModel):
    """An immutable part of a JSON report."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class UsageSum(Report):
    """Tokens, summed over calls. A field is null if no call reports it; `unknown` counts the calls that do not."""

    input: int | None = None
    cached: int | None = None
    cache_write: int | None = None
    output: int | None = None
    reasoning: int | None = None
    unknown_calls: int = Field(0, description="calls without any usage")
    unknown: dict[str, int] = Field(
        default_factory=dict, description="for each field, the number of calls that do not report it"
    )

    def __str__(self) -> str:
        known = [(self.input, "input"), (self.cached, "cached"), (self.output, "output")]
        return ", ".join(f"{count:,} {name}" for count, name in known if count is not None) or UNKNOWN


class CostSum(Report):
    """Cost of calls. `usd` is null if no cost is known; `unknown_calls` counts the calls without a known cost.

    `estimated_calls`: calls whose price assumes the provider, or that no input was cached.
    """

    usd: float | None = None
    currency: Literal["USD"] = "USD"
    unknown_calls: int = 0
    estimated_calls: int = 0


class CacheSum(Report):
    """Result of the prompt cache: number of calls by verdict (see `wiretape cache`), and the cost of misses."""

    verdicts: dict[str, int] = Field(default_factory=dict)
    lost_tokens: int | None = Field(
        default=None, description="input tokens that the cache could have served, and did not"
    )
    lost_usd: float | None = None


class CauseReport(Report):
    """`why` as values: the kind of cause, and the call and tools that led to this call."""

    kind: CauseKind
    call: int | None = None
    tools: list[str] = Field(default_factory=list)
    basis: LinkBasis | None = None


class ToolRunReport(Report):
    """A tool call that reached a tool server whose exchange is on the tape."""

    tool: str
    index: int = Field(description="index of the tool call in the answer, from 0")
    exchange: int
    ms: int | None = None


class CallReport(Report):
    """A model call: a step of `wiretape stats --json`."""

    call: int
    exchange: int
    agent: str
    thread: int
    model: str | None
    requested_model: str | None
    format: str
    finish: str | None
    status: int | None
    ended: str | None
    usage: UsageSum | None
    hit_rate: float | None = Field(None, description="cached / input; null if one of them is unknown")
    cost: CostSum = Field(default_factory=CostSum)
    tool_calls: list[str]
    ran: list[ToolRunReport] = Field(default_factory=list)
    first_token_ms: int | None = Field(
        None, description="from the start of the request to the first event with content"
    )
    duration_ms: int | None = None
    at_ms: int
    why: str
    cause: CauseReport

    def __repr__(self) -> str:
        model = self.model or "unknown model"
        return f"<Call {self.call} by {self.agent}: {model}, {self.usage or UNKNOWN}; {self.why}>"


class TurnReport(Report):
    """A turn: its sums and its calls."""

    turn: int
    user: str
    answer: str | None
    calls: int
    tool_calls: int
    agents: int
    usage: UsageSum
    hit_rate: float | None = None
    cost: CostSum = Field(default_factory=CostSum)
    wall_ms: int | None = None
    steps: list[CallReport]

    def __repr__(self) -> str:
        user = " ".join(self.user[:80].split())
        return f"<Turn {self.turn}: {_counted(self)}, {self.usage}; {user!r}>"


def _counted(group: TurnReport | GroupReport) -> str:
    return f"{plural(group.calls, 'model call')}, {plural(group.tool_calls, 'tool call')}"


class GroupReport(Report):
    """Sums over the calls of one group: an agent, a model, a day."""

    name: str
    calls: int
    tool_calls: int
    usage: UsageSum
    hit_rate: float | None = None
    cost: CostSum = Field(default_factory=CostSum)


class AgentReport(GroupReport):
    """An agent: its sums and its origin."""

    parent: str | None = None
    started_by: int | None = Field(None, description="the call whose tool call started this agent")
    started_tool: str | None = None
    basis: LinkBasis | None = None
    origin: AgentOrigin = "root"

    def __repr__(self) -> str:
        start = f"; started by call {self.started_by}" if self.started_by is not None else ""
        return f"<Agent {self.name}: {_counted(self)}, {self.usage}{start}>"


class LinkReport(Report):
    """A link between two agents, or from a thread to its continuation, and the evidence for it."""

    kind: LinkKind
    from_call: int | None = None
    from_agent: str | None = None
    tool: str | None = Field(None, description="name of the tool call that carried it")
    tool_index: int | None = None
    to_call: int | None = Field(None, description="null: no call on this tape received it")
    to_agent: str | None = Field(None, description="null: the agent has no call on this tape")
    basis: LinkBasis
    certainty: Certainty
    detail: str | None = None


class Finding(Report):
    """A problem or an event to look at. `estimate`: it is inferred, not reported by the provider."""

    kind: str
    call: int | None
    text: str
    estimate: bool = False


class StatsReport(Report):
    """The whole analysis of a run."""

    calls: int
    not_inferences: dict[str, int] = Field(
        default_factory=dict, description="number of calls of other kinds: prewarm, token_count, …"
    )
    tool_calls: int
    agents: int
    usage: UsageSum
    hit_rate: float | None = None
    cost: CostSum = Field(default_factory=CostSum)
    wall_ms: int | None = None
    turns: list[TurnReport]
    side_calls: list[CallReport] = Field(default_factory=list)
    by_agent: list[AgentReport] = Field(default_factory=list)
    links: list[LinkReport] = Field(default_factory=list, description="all links between agents")
    by_model: list[GroupReport] = Field(default_factory=list)
    prices: str | None = Field(
        default=None, description="name of the price list; null: costs are those that providers report"
    )
    cache: CacheSum = Field(default_factory=CacheSum)
    findings: list[Finding] = Field(default_factory=list)
    other_exchanges: int = Field(0, description="number of exchanges that are not model calls")
    warnings: list[str] = Field(default_factory=list, description="warnings of the tape's reader")
