"""The printed shape of a cache diagnosis: what `wiretape cache --json` gives. Null is unknown."""

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
    """Where a prefix stops being what was sent before, and what kind of thing stands there."""

    kind: BreakKind
    what: str = Field(description="the same in words, such as `a clock`")
    path: str
    character: int | None = Field(default=None, description="counted from 0: so many are still the same")
    before: str | None = None
    after: str | None = None
    around: tuple[str, str] | None = Field(default=None, description="both texts about the place")
    place: int = Field(default=0, description="where in `around` they begin to differ")
    text: str


class CacheCall(Report):
    """One call: what an earlier one had sent, what the cache ought to have served, what it did, and why."""

    call: int
    agent: str
    model: str | None
    rules: str = Field(description="whose rules it falls under: a name in the table of `docs/cache.md`")
    input: int | None = None
    shared: int | None = Field(default=None, description="tokens that an earlier call of this model and key had sent")
    predicted: int | None = Field(default=None, description="what of them the rules let the cache serve")
    estimate: bool = Field(default=False, description="`shared` and `predicted` are worked out from the text's length")
    reported: int | None = Field(default=None, description="what the wire says was served")
    written: int | None = None
    compared_with: int | None = Field(default=None, description="the call whose request was to be continued")
    idle_ms: int | None = Field(default=None, description="since that prefix was last sent")
    verdict: Verdict
    evidence: Evidence = "inferred"
    text: str = Field(description="the verdict as a sentence")
    breaks: list[CacheBreak] = Field(default_factory=list)
    lost_tokens: int | None = Field(default=None, description="input that the cache would have served otherwise")
    lost_behind: int | None = Field(default=None, description="what of them stands behind the break: what `mend` gains")
    lost_before: int | None = Field(default=None, description="and in front of it: predicted, and not served")
    why_before: str | None = Field(default=None, description="why those in front of it were not served")
    lost_usd: float | None = None
    mend: str | None = Field(default=None, description="the one change that would mend it")


class CacheReport(Report):
    calls: list[CacheCall]
    verdicts: dict[Verdict, int] = Field(default_factory=dict)
    predicted: int | None = Field(default=None, description="over the calls of which both are known")
    reported: int | None = None
    lost_tokens: int | None = None
    lost_before: int | None = Field(default=None, description="what of them stood in front of a break")
    lost_usd: float | None = Field(default=None, description="as far as prices are known")
    prices: str | None = None
