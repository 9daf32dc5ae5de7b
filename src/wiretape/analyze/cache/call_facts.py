"""The facts about a call that a verdict uses, and the phrases that verdicts share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wiretape.analyze.cache.breaks import BreakKind, ProviderReason, kind_of
from wiretape.analyze.cache.prefix_tree import UNKNOWN, Sent, Tokens, servable
from wiretape.analyze.cache.rules import CacheRule
from wiretape.analyze.prefix_breaks import PrefixBreak
from wiretape.model.call import ModelCall

_MOST = 0.8  # share of the predicted tokens from which the prefix counts as served


@dataclass(frozen=True, slots=True)
class Situation:
    """A call, the call that it continues, and their common prefix."""

    sent: Sent
    rule: CacheRule
    before: Sent | None
    alike: int = 0  # elements in common with `before`
    elsewhere: PrefixBreak | None = None  # another model or key: another cache
    breaks: Sequence[PrefixBreak] = ()
    shared: Tokens = UNKNOWN
    expected: int | None = None  # tokens that an unchanged prefix serves
    reason: ProviderReason | None = None  # the reason that the provider reports
    idle_ms: int | None = None
    kept: int | None = None  # seconds without use after which the provider may drop an entry
    held: bool = False  # the provider holds the history
    answer: PrefixBreak | None = None  # the answer came back without its reasoning
    with_answer: int | None = None  # tokens that a complete answer would have served
    handoff: bool = False  # another agent continues the conversation

    @property
    def call(self) -> ModelCall:
        return self.sent.call

    @property
    def reported(self) -> int | None:
        return self.call.usage.cached if self.call.usage is not None else None

    @property
    def input(self) -> int | None:
        return self.call.usage.input if self.call.usage is not None else None

    @property
    def intact(self) -> bool:
        return self.before is not None and self.alike == len(self.before.numbers) and self.elsewhere is None

    @property
    def predicted(self) -> int | None:
        """Tokens that the cache can serve by the provider's rules."""
        if self.before is None and self.sent.base is None:
            return 0
        if self.intact:
            return self.expected
        if self.rule.how == "marked":
            return None if self.alike else 0
        return servable(self.shared.count, self.rule, self.call.request.model)

    @property
    def most_was_served(self) -> bool:
        """True if the reported tokens are about those of an unchanged prefix."""
        reported, expected = self.reported, self.expected
        return bool(reported) and expected is not None and (reported or 0) + self.rule.step >= _MOST * expected


def served(at: Situation) -> str:
    of = f" of {at.input:,}" if at.input is not None else ""
    return f"{at.reported or 0:,}{of} input tokens came from the cache"


def kinds(at: Situation) -> tuple[tuple[BreakKind, PrefixBreak], ...]:
    if at.before is None:
        return ()
    return tuple((kind_of(found, at.before.call.request, at.call.request), found) for found in at.breaks)


def compared(at: Situation) -> str:
    return f" (compared with call {number_before(at)})" if at.before is not None else ""


def number_before(at: Situation) -> int:
    return at.before.call.number if at.before is not None else 0


def last_sent(at: Situation) -> int:
    """Return the call that sent the prefix last."""
    base = at.sent.base
    return max(number_before(at), base.call.number if base is not None and base.call is not at.call else 0)


def span(ms: int) -> str:
    """Return a duration in words."""
    seconds = ms / 1000
    if seconds < 120:
        return f"{seconds:.0f} s" if seconds >= 1 or not ms else f"{ms} ms"
    minutes = seconds / 60
    if minutes < 120:
        return f"{minutes:.0f} minutes"
    hours = minutes / 60
    return f"{hours:.0f} hours" if hours < 48 else f"{hours / 24:.0f} days"
