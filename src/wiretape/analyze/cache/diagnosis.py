"""Explain for each call why the provider's prompt cache served its prompt, or did not.

Each call is compared with the call that it continues. Evidence is used in this order: the reason that the provider
reports, the reported token counts, the texts. `rules` has each provider's rules for what its cache can serve.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import takewhile
from urllib.parse import urlsplit

from wiretape.analyze.cache.breaks import BreakKind, provider_reason
from wiretape.analyze.cache.call_facts import Situation
from wiretape.analyze.cache.markers import element_path
from wiretape.analyze.cache.prefix_tree import (
    UNKNOWN,
    Elements,
    Prefixes,
    Sent,
    Tokens,
    servable,
    tokens_at,
    whole_tokens,
)
from wiretape.analyze.cache.report import CacheBreak, CacheCall, CacheReport
from wiretape.analyze.cache.rules import CacheRule, asks_long, lifetime, rule_for
from wiretape.analyze.cache.verdicts import Ruling, judge, why_not_served
from wiretape.analyze.cost import PriceList, cost_of_uncached
from wiretape.analyze.prefix_breaks import PrefixBreak, breaks, provider_holds_history
from wiretape.model.call import ModelCall, Reasoning, sum_known
from wiretape.model.common_prefix import common_prefix
from wiretape.model.run import Run, Step
from wiretape.model.wording import clip
from wiretape.runs.agent_identity import same_prompt, system_of, tool_names
from wiretape.runs.threads import failed

_KINDS = ("inference", "prewarm", "completion")
Scope = tuple[str, str | None, str | None]


def diagnose(run: Run, listed: PriceList | None = None) -> CacheReport:
    """Return the verdict on every call that has a prompt. A price list adds the cost of misses."""
    history = _History(run)
    calls = [_report(step, history, run, listed) for step in run.steps if step.call.kind in _KINDS]
    both = [(one.predicted, one.reported) for one in calls if one.predicted is not None and one.reported is not None]
    return CacheReport(
        calls=calls,
        verdicts=dict(Counter(one.verdict for one in calls)),
        predicted=sum(predicted for predicted, _ in both) if both else None,
        reported=sum(reported for _, reported in both) if both else None,
        lost_tokens=sum_known(one.lost_tokens for one in calls),
        lost_before=sum_known(one.lost_before for one in calls),
        lost_usd=sum_known(one.lost_usd for one in calls),
        prices=listed.name if listed is not None else None,
    )


class _History:
    """The requests so far, and the call that each one continues."""

    def __init__(self, run: Run) -> None:
        self.elements = Elements()
        self._run = run
        self._sent: dict[int, Sent] = {}
        self._scopes: dict[Scope, Prefixes] = {}
        self._before = dict(_predecessors(run))
        self._long: set[Scope] = set()  # with entries of the longer lifetime
        self._latest: dict[str, int] = {}  # agent family -> its last answered call

    def situation(self, step: Step) -> Situation:
        """Return the facts about a call, and add the call to the history."""
        call, rule = step.call, rule_for(step.call)
        sent = self.elements.sent(call)
        family = self._family(step)
        before = self._predecessor(call, family, sent)
        if not failed(call):
            self._scopes.setdefault(scope(call), Prefixes()).add(sent)
            self._sent[call.number] = sent
            self._latest[family] = call.number
        at = _situation(sent, rule, before, self.elements)
        kept = lifetime(rule, before is not None and scope(before.call) in self._long)
        if asks_long(call):
            self._long.add(scope(call))
        return replace(at, kept=kept, handoff=step.cause.kind == "handoff")

    def _family(self, step: Step) -> str:
        """The name that `look` and `look #2` share. Side calls have a family of their own."""
        return f"{self._run.agents[step.agent].name.partition(' #')[0]} {step.turn is None}"

    def _predecessor(self, call: ModelCall, family: str, sent: Sent) -> Sent | None:
        """Return the call that this one continues, or the last of its family if their prompts or tools differ."""
        number = self._before.get(call.number)
        while number is not None:  # a failed call leaves nothing in the cache
            if number in self._sent:
                return self._sent[number]
            number = self._before.get(number)
        last = self._sent.get(self._latest.get(family, 0))
        return last if last is not None and _parts_early(last, sent) else None


def _predecessors(run: Run) -> Iterable[tuple[int, int]]:
    """Yield each call with the one before it in its thread; for a thread's first call, the call it forked from."""
    for thread in run.threads:
        if thread.calls and thread.from_call is not None:
            yield thread.calls[0], thread.from_call
        for before, after in zip(thread.calls, thread.calls[1:], strict=False):
            yield after, before


def _parts_early(last: Sent, sent: Sent) -> bool:
    """True if two conversations with similar system prompts differ in tools or system prompt.

    A call with an entirely different prompt belongs to another agent, and does not continue this one.
    """
    opening, one, other = _opening(last), last.call.request, sent.call.request
    alike = same_prompt(one, other) if system_of(one) else bool(one.tools) and tool_names(one) == tool_names(other)
    return alike and common_prefix(last.numbers[:opening], sent.numbers[:opening]) < opening


def _opening(sent: Sent) -> int:
    """Number of elements that are tools or system messages."""
    return sent.tools + len(system_of(sent.call.request))


def scope(call: ModelCall) -> Scope:
    """Calls share a cache if host, model and cache key are equal."""
    try:
        host = urlsplit(call.url).netloc
    except ValueError:
        host = call.url
    return host, call.request.model or call.model, _key(call)


def _key(call: ModelCall) -> str | None:
    key = call.request.settings.get("prompt_cache_key")
    return key if isinstance(key, str) else None


def _situation(sent: Sent, rule: CacheRule, before: Sent | None, elements: Elements) -> Situation:
    call = sent.call
    at = Situation(sent, rule, before, reason=provider_reason(call), held=provider_holds_history(call.request))
    base = sent.base
    if before is None:
        shared = tokens_at(sent, sent.shared, elements) if sent.shared else Tokens(0 if base is None else None)
        return replace(at, shared=shared)
    alike = sent.shared if before is base else common_prefix(before.numbers, sent.numbers)
    if base is not None and sent.whole and alike < sent.shared:  # it shares more with a call outside its thread
        before, alike = base, sent.shared
        at = replace(at, before=before)
    found = breaks(before.call.request, call.request) if alike < len(before.numbers) else []
    if not found and alike < len(before.numbers):
        found = [PrefixBreak(element_path(before.call.request, alike), "other members changed", None, None)]
    most = max(sent.shared, alike)
    more = found[0].character or 0 if found and alike == most else 0
    seen = [one.call for one in (before, base) if one is not None and (one is before or sent.shared >= alike)]
    return replace(
        at,
        alike=alike,
        elsewhere=_cache_switch(before.call, call),
        breaks=found,
        shared=tokens_at(sent, most, elements, more),
        answer=_answer_break(before.call, call) if rule.answers and not found else None,
        with_answer=_with_answer(before, rule),
        expected=_expected(before, rule, tokens_at(sent, alike, elements) if not found else UNKNOWN),
        idle_ms=max(0, call.at - max(one.at for one in seen)),
    )


def _cache_switch(before: ModelCall, call: ModelCall) -> PrefixBreak | None:
    """Return the change of model or cache key, if there is one."""
    old, new = before.request.model, call.request.model
    if old is not None and new is not None and old != new:
        return PrefixBreak("model", "another model", old, new)
    if _key(before) != _key(call):
        return PrefixBreak("prompt_cache_key", "another key", _key(before), _key(call))
    return None


def _answer_break(before: ModelCall, call: ModelCall) -> PrefixBreak | None:
    """Return the reasoning of an answer with tool calls that the next request leaves out."""
    answer, messages, place = before.response, call.request.messages, len(before.request.messages)
    if answer is None or all(tool.kind == "server" for tool in before.tool_calls):
        return None
    thought = next((b.text for m in answer.messages for b in m.blocks if isinstance(b, Reasoning) and b.text), None)
    back = list(takewhile(lambda message: message.role == "assistant", messages[place:]))
    if thought is None or not back or any(isinstance(block, Reasoning) for one in back for block in one.blocks):
        return None
    return PrefixBreak(call.request.path(place), "reasoning", clip(thought, 60), None)


def _with_answer(before: Sent, rule: CacheRule) -> int | None:
    usage, whole = before.call.usage, whole_tokens(before)
    if whole is None or usage is None or usage.output is None:
        return None
    return servable(whole + usage.output, rule, before.call.request.model)


def _expected(before: Sent, rule: CacheRule, intact: Tokens) -> int | None:
    """Tokens that the cache serves if a request starts with the whole request before it (`intact`: its tokens)."""
    usage, whole = before.call.usage, whole_tokens(before)
    if rule.how != "marked":
        return servable(intact.count if whole is None else whole, rule, before.call.request.model)
    if usage is None or whole is None:
        return None
    return sum_known((usage.cached, usage.cache_write)) or None


# -- reports -------------------------------------------------------------------------------------------------------


def _report(step: Step, history: _History, run: Run, listed: PriceList | None) -> CacheCall:
    at = history.situation(step)
    ruling, call = judge(at), step.call
    lost = _lost(at, ruling)
    before = _lost_before(at, ruling, lost) if lost else None
    cost = cost_of_uncached(call, lost, listed) if lost else None
    return CacheCall(
        call=call.number,
        agent=run.agents[step.agent].name,
        model=call.model,
        rules=at.rule.name,
        input=at.input,
        shared=at.shared.count,
        predicted=at.predicted,
        estimate=not at.shared.exact and bool(at.shared.count),
        reported=at.reported,
        written=call.usage.cache_write if call.usage is not None else None,
        compared_with=at.before.call.number if at.before is not None else None,
        idle_ms=at.idle_ms,
        verdict=ruling.verdict,
        evidence=ruling.evidence,
        text=ruling.text,
        breaks=[_break(kind, found) for kind, found in ruling.breaks],
        lost_tokens=lost,
        lost_behind=lost - before if lost is not None and before is not None else None,
        lost_before=before,
        why_before=why_not_served(at) if before else None,
        lost_usd=float(cost.usd) if cost is not None else None,
        mend=ruling.mend,
    )


def _lost(at: Situation, ruling: Ruling) -> int | None:
    """Tokens that an unchanged prefix would have served, at most the input of the call."""
    if not ruling.missed:
        return None
    if at.reason is not None and at.reason.tokens is not None:
        return at.reason.tokens
    expected = at.with_answer if at.answer is not None and at.intact else at.expected
    if expected is None:
        return None
    served = at.reported if at.reported is not None else at.predicted
    if served is None:
        return None
    return max(0, min(expected, at.input if at.input is not None else expected) - served)


def _lost_before(at: Situation, ruling: Ruling, lost: int) -> int | None:
    """The lost tokens in front of the break, which the break does not explain. None: unknown."""
    inside = not at.intact or at.answer is not None
    if ruling.verdict != "broken" or not inside or at.elsewhere is not None or at.reason is not None:
        return None
    if at.predicted is None:
        return None
    return min(lost, max(0, at.predicted - (at.reported if at.reported is not None else at.predicted)))


def _break(kind: BreakKind, found: PrefixBreak) -> CacheBreak:
    return CacheBreak(
        kind=kind,
        what=found.what,
        path=found.path,
        character=found.character,
        before=found.before,
        after=found.after,
        around=found.around,
        place=found.place,
        text=str(found),
    )
