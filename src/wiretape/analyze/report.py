"""The printed shape of an analysis: what `wiretape stats --json` gives. Numbers come from the wire; null is unknown."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from wiretape.model.run import AgentOrigin, CauseKind, Certainty, LinkBasis, LinkKind
from wiretape.model.wording import plural

UNKNOWN = "unknown tokens"


class Report(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class UsageSum(Report):
    """Tokens, summed over calls. A field is null when no call gives it; `unknown` counts the calls that do not."""

    input: int | None = None
    cached: int | None = None
    cache_write: int | None = None
    output: int | None = None
    reasoning: int | None = None
    unknown_calls: int = Field(0, description="calls of which the wire gave no usage at all")
    unknown: dict[str, int] = Field(default_factory=dict, description="per field, the calls that do not give it")

    def __str__(self) -> str:
        known = [(self.input, "input"), (self.cached, "cached"), (self.output, "output")]
        return ", ".join(f"{count:,} {name}" for count, name in known if count is not None) or UNKNOWN


class CostSum(Report):
    """What calls cost. `usd` is null when no call's cost is known; `unknown_calls` counts those that it leaves out.

    `estimated_calls`: priced although the wire does not say all that counts (who served them, what was cached).
    """

    usd: float | None = None
    currency: Literal["USD"] = "USD"
    unknown_calls: int = 0
    estimated_calls: int = 0


class CacheSum(Report):
    """How the provider's prompt cache did: calls by verdict (see `wiretape cache`), and what misses cost."""

    verdicts: dict[str, int] = Field(default_factory=dict)
    lost_tokens: int | None = Field(default=None, description="input that the cache would have served otherwise")
    lost_usd: float | None = None


class CauseReport(Report):
    """`why`, for programs."""

    kind: CauseKind
    call: int | None = None
    tools: list[str] = Field(default_factory=list)
    basis: LinkBasis | None = None


class ToolRunReport(Report):
    """Where a tool that the call asked for really ran: its server's exchange is on the tape."""

    tool: str
    index: int = Field(description="which of the call's tool calls")
    exchange: int
    ms: int | None = None


class CallReport(Report):
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
    hit_rate: float | None = Field(None, description="cached / input, null where either is unknown")
    cost: CostSum = Field(default_factory=CostSum)
    tool_calls: list[str]
    ran: list[ToolRunReport] = Field(default_factory=list)
    first_token_ms: int | None = Field(None, description="from the request's start to the first content-bearing event")
    duration_ms: int | None = None
    at_ms: int
    why: str
    cause: CauseReport

    def __repr__(self) -> str:
        model = self.model or "unknown model"
        return f"<Call {self.call} by {self.agent}: {model}, {self.usage or UNKNOWN}; {self.why}>"


class TurnReport(Report):
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
    """A tally over one agent or one model."""

    name: str
    calls: int
    tool_calls: int
    usage: UsageSum
    hit_rate: float | None = None
    cost: CostSum = Field(default_factory=CostSum)


class AgentReport(GroupReport):
    parent: str | None = None
    started_by: int | None = Field(None, description="the call whose tool call started this agent")
    started_tool: str | None = None
    basis: LinkBasis | None = None
    origin: AgentOrigin = "root"

    def __repr__(self) -> str:
        start = f"; started by call {self.started_by}" if self.started_by is not None else ""
        return f"<Agent {self.name}: {_counted(self)}, {self.usage}{start}>"


class LinkReport(Report):
    """What went from one agent to another, or from a thread to the one that follows it, and what says so."""

    kind: LinkKind
    from_call: int | None = None
    from_agent: str | None = None
    tool: str | None = Field(None, description="the tool call that carried it")
    tool_index: int | None = None
    to_call: int | None = Field(None, description="null: it reached no call of this tape")
    to_agent: str | None = Field(None, description="null: an agent that made no call on this tape")
    basis: LinkBasis
    certainty: Certainty
    detail: str | None = None


class Finding(Report):
    """Something worth a person's eye. `estimate` says that it is inferred, not read off the wire."""

    kind: str
    call: int | None
    text: str
    estimate: bool = False


class StatsReport(Report):
    calls: int
    not_inferences: dict[str, int] = Field(
        default_factory=dict, description="how many of the calls are something else: prewarm, token_count, …"
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
    links: list[LinkReport] = Field(default_factory=list, description="everything between agents")
    by_model: list[GroupReport] = Field(default_factory=list)
    prices: str | None = Field(
        default=None, description="the price list used; null: none, costs are what the wire tells"
    )
    cache: CacheSum = Field(default_factory=CacheSum)
    findings: list[Finding] = Field(default_factory=list)
    other_exchanges: int = Field(0, description="exchanges that are no model calls")
    warnings: list[str] = Field(default_factory=list, description="what the reader of the tape had to say")
