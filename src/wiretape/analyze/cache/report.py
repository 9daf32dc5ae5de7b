"""The JSON of `wiretape cache --json`. Null means unknown."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field

from wiretape.analyze.cache.breaks import BreakKind
from wiretape.analyze.report import Report

Verdict: TypeAlias = Literal[
    "served",
    "first",
    "not_asked",
    "below_minimum",
    "broken",
    "expired",
    "too_early",
    "routed_elsewhere",
    "unknown",
]
Evidence: TypeAlias = Literal["provider", "wire", "inferred"]


class CacheBreak(Report):
    """A place where a prefix differs from the earlier request, and the kind of change."""

    kind: BreakKind
    what: str = Field(description="the kind in words, such as `a clock`")
    path: str
    character: int | None = Field(default=None, description="the first character that differs, counted from 0")
    before: str | None = None
    after: str | None = None
    around: tuple[str, str] | None = Field(default=None, description="both texts near the place")
    place: int = Field(default=0, description="index in `around` of the first difference")
    text: str


class CacheCall(Report):
    """A call: the tokens sent before, those that the cache should serve, those that it served, and why."""

    call: int
    agent: str
    model: str | None
    rules: str = Field(description="the provider's rules: a name in the table of `docs/cache.md`")
    input: int | None = None
    shared: int | None = Field(
        default=None, description="first tokens that an earlier call with this model and key had sent"
    )
    predicted: int | None = Field(default=None, description="how many of them the cache can serve by the rules")
    estimate: bool = Field(default=False, description="`shared` and `predicted` are estimates by text length")
    reported: int | None = Field(default=None, description="tokens that the provider reports as served")
    written: int | None = None
    compared_with: int | None = Field(default=None, description="the call that this one continues")
    idle_ms: int | None = Field(default=None, description="milliseconds since the prefix was last sent")
    verdict: Verdict
    evidence: Evidence = "inferred"
    text: str = Field(description="the verdict as a sentence")
    breaks: list[CacheBreak] = Field(default_factory=list)
    lost_tokens: int | None = Field(default=None, description="input tokens that the cache could serve, and did not")
    lost_behind: int | None = Field(default=None, description="those behind the break: `mend` gains them")
    lost_before: int | None = Field(default=None, description="those in front of the break: predicted, and not served")
    why_before: str | None = Field(default=None, description="why the tokens in front of the break were not served")
    lost_usd: float | None = None
    mend: str | None = Field(default=None, description="the change that fixes it")


class CacheReport(Report):
    """The verdicts on all calls, and their sums."""

    calls: list[CacheCall]
    verdicts: dict[Verdict, int] = Field(default_factory=dict)
    predicted: int | None = Field(default=None, description="sum over the calls with both numbers known")
    reported: int | None = None
    lost_tokens: int | None = None
    lost_before: int | None = Field(default=None, description="how many of them are in front of a break")
    lost_usd: float | None = Field(default=None, description="sum of the known costs")
    prices: str | None = None
