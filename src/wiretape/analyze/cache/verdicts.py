"""The verdict on one call. Each rule is a function; the first rule that applies decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wiretape.analyze.cache.breaks import BreakKind, fix_for, kind_of, shape_break
from wiretape.analyze.cache.call_facts import Situation, compared, kinds, last_sent, number_before, served, span
from wiretape.analyze.cache.markers import entry, marker_break, marks, reaches
from wiretape.analyze.cache.prefix_tree import whole_tokens
from wiretape.analyze.cache.report import Evidence, Verdict
from wiretape.analyze.cache.rules import CacheRule
from wiretape.analyze.prefix_breaks import PrefixBreak, compact_json
from wiretape.model.call import CallRequest, ModelCall
from wiretape.runs.threads import failed

_LOST = "it went to another cache, or was dropped early"
_BEYOND = 1.25  # reported tokens / tokens before the break, from which the break had no effect


@dataclass(frozen=True, slots=True)
class Ruling:
    """A verdict with its text, its evidence, and the breaks that explain it."""

    verdict: Verdict
    text: str
    evidence: Evidence = "inferred"
    breaks: tuple[tuple[BreakKind, PrefixBreak], ...] = ()
    mend: str | None = None
    missed: bool = False  # the tokens that were not served count as lost


Rule = Callable[[Situation], Ruling | None]


def judge(at: Situation) -> Ruling:
    """Return the verdict of the first rule that applies."""
    for rule in _RULES:
        ruling = rule(at)
        if ruling is not None:
            return ruling
    return Ruling("unknown", "the reason is unknown")


def _failed(at: Situation) -> Ruling | None:
    if failed(at.call) and at.call.usage is None:
        return Ruling("unknown", "the call has no complete answer")
    return None


def _reported_reason(at: Situation) -> Ruling | None:
    """The provider reports the reason; comparing the texts finds its place."""
    if at.reason is None:
        return None
    found = tuple((kind_of(one, at.before.call.request, at.call.request), one) for one in at.breaks if at.before)
    if at.reason.kind == "model_switch" and at.elsewhere is not None:
        found = (("model_switch", at.elsewhere), *found)
    if not found:
        found = (
            (at.reason.kind, PrefixBreak(_SECTION.get(at.reason.kind, "the request"), at.reason.reason, None, None)),
        )
    kind, first = found[0]
    text = f"the provider says {at.reason.reason}: {first}{compared(at)}"
    return Ruling("broken", text, "provider", found, fix_for(kind, first), missed=True)


_SECTION: dict[BreakKind, str] = {"prompt_changed": "system", "tools_changed": "tools", "history_edited": "messages"}


def _nothing_before(at: Situation) -> Ruling | None:
    if at.before is not None:
        return None
    if at.reported:
        return Ruling("served", f"{served(at)}; the call that sent them before is not on this tape", "wire")
    if at.held:
        return Ruling("unknown", "the provider holds the history: the full prompt is not on the tape")
    text = "the first request of its kind"
    if at.sent.base is not None and at.shared.count:
        text += f"; about its first {at.shared.count:,} tokens are those of call {at.sent.base.call.number}"
    return Ruling("first", text)


def _held(at: Situation) -> Ruling | None:
    if not at.held:
        return None
    if at.reported:
        return Ruling("served", served(at), "wire")
    return Ruling("unknown", "the provider holds the history: it cannot be compared")


def _served_all(at: Situation) -> Ruling | None:
    """The reported tokens are about those predicted, in spite of any change."""
    if not at.most_was_served:
        return None
    text = served(at)
    if at.breaks and at.rule.promised:
        text += f"; what changed at {at.breaks[0].path} did not matter to the cache"
    return Ruling("served", text, "wire")


def _answer_changed(at: Situation) -> Ruling | None:
    """Where answers are cached, an answer without its reasoning is a different text."""
    if at.answer is None or not at.intact:
        return None
    if at.reported is not None and at.with_answer is not None and at.reported >= at.with_answer:
        return None
    text = f"prefix breaks at {at.answer}: the answer of call {number_before(at)} came back without its reasoning"
    found: tuple[tuple[BreakKind, PrefixBreak], ...] = (("reasoning_dropped", at.answer),)
    return Ruling("broken", text, "inferred", found, fix_for("reasoning_dropped", at.answer), missed=True)


def _never_asked(at: Situation) -> Ruling | None:
    """Only marked parts are cached, and the request has no marker."""
    if at.rule.how != "marked" or at.reported or at.before is None:
        return None
    if marks(at.call.request) or (at.call.usage is not None and at.call.usage.cache_write):
        if marks(at.before.call.request) or (at.before.call.usage and at.before.call.usage.cache_write):
            return None
        return Ruling("first", f"the first request with a cache marker: call {number_before(at)} did not")
    text = "the request has no cache marker"
    if not at.intact and at.breaks:
        text += f"; its prefix also changed at {at.breaks[0]}{compared(at)}"
    return Ruling("not_asked", text, "wire", kinds(at), "mark the last block with cache_control (or a cachePoint)")


def _too_short(at: Situation) -> Ruling | None:
    if at.reported or at.before is None:
        return None
    least, before = at.rule.least(at.call.request.model), at.before.call.usage
    if at.rule.how == "marked" and _nothing_happened(at.call) and _nothing_happened(at.before.call):
        known = f" ({least:,} for this model)" if least else ""
        text = f"marked, but neither read nor written: the provider caches only longer prompts{known}"
        return Ruling("below_minimum", text, "wire", kinds(at), "none is needed while prompts are this short")
    tokens = whole_tokens(at.before) if before is not None else None
    if tokens is None and at.intact:
        tokens = at.shared.count
    if least is None or tokens is None or tokens >= least or at.reported is None:
        return None
    text = f"call {number_before(at)} had sent {tokens:,} tokens; {at.rule.name} caches from {least:,} on"
    return Ruling("below_minimum", text, "inferred", kinds(at), "none is needed while prompts are this short")


def _nothing_happened(call: ModelCall) -> bool:
    usage = call.usage
    return usage is not None and usage.cached == 0 and usage.cache_write == 0 and bool(marks(call.request))


def _elsewhere(at: Situation) -> Ruling | None:
    """Another model or cache key means another cache."""
    if at.elsewhere is None:
        return None
    kind: BreakKind = "model_switch" if at.elsewhere.path == "model" else "key_changed"
    text = f"prefix breaks at {at.elsewhere}{compared(at)}"
    verdict: Verdict = "broken" if kind == "model_switch" else "routed_elsewhere"
    return Ruling(verdict, text, "inferred", ((kind, at.elsewhere), *kinds(at)), fix_for(kind, at.elsewhere), True)


def _broken(at: Situation) -> Ruling | None:
    if at.intact or not at.breaks or at.before is None:
        return None
    reported, shared = at.reported, at.shared.count
    beyond = reported is not None and shared is not None and reported > _BEYOND * shared + max(64, at.rule.step)
    if beyond:
        text = f"{served(at)}; what changed at {at.breaks[0].path} did not matter to the cache"
        return Ruling("served", text, "wire")
    found = kinds(at)
    kind, first = found[0]
    evidence: Evidence = "inferred" if reported is None else "wire"
    text = f"prefix breaks at {first}{compared(at)}"
    how = fix_for(kind, first)
    if at.handoff:
        text, how = f"{text}: a handoff to another agent", "none is needed: another agent has a prompt of its own"
    return Ruling("broken", text, evidence, found, how, missed=True)


def _unsaid(at: Situation) -> Ruling | None:
    if at.reported is not None:
        return None
    if at.intact:
        return Ruling("unknown", "the prefix is intact; the provider does not report cached tokens")
    return Ruling("unknown", "the provider does not report cached tokens")


def _marker(at: Situation) -> Ruling | None:
    """No marker of this request reaches the entry that an earlier request wrote."""
    if at.rule.how != "marked" or at.before is None or not at.intact:
        return None
    place = entry(at.before.call.request, at.alike)
    if place is None or reaches(at.call.request, place, at.rule):
        return None
    found = marker_break(at.before.call.request, at.call.request, place)
    text = f"the prefix is intact, but {found}{compared(at)}: no marker leads to what was cached"
    return Ruling("broken", text, "inferred", (("marker_moved", found),), fix_for("marker_moved", found), missed=True)


def _setting(at: Situation) -> Ruling | None:
    if at.before is None:
        return None
    found = setting_break(at.before.call.request, at.call.request, at.rule.settings)
    if found is None:
        return None
    text = f"the prefix is intact, but {found}{compared(at)}"
    return Ruling("broken", text, "inferred", (("setting_changed", found),), fix_for("setting_changed", found), True)


def setting_break(before: CallRequest, after: CallRequest, names: Sequence[str]) -> PrefixBreak | None:
    """Return the first setting that changed and that invalidates the prefix."""
    for name in names:
        old, new = before.settings.get(name), after.settings.get(name)
        if old != new:
            one, other = (None if value is None else compact_json(value) for value in (old, new))
            return PrefixBreak(name, "a setting", one, other)
    return None


def _expired(at: Situation) -> Ruling | None:
    if at.before is None or at.idle_ms is None:
        return None
    seconds = at.kept
    if seconds is None or at.idle_ms < seconds * 1000:
        return None
    text = (
        f"the prefix is intact, but {span(at.idle_ms)} had passed since call {last_sent(at)} sent it: "
        f"{at.rule.name} keeps entries {span(seconds * 1000)} without use"
    )
    longer = at.rule.long_lifetime is not None and seconds != at.rule.long_lifetime
    how = f"ask for the longer lifetime ({span((at.rule.long_lifetime or 0) * 1000)}), or" if longer else ""
    return Ruling("expired", text, "inferred", (), f"{how} call again sooner".strip(), missed=True)


def _shape(at: Situation) -> Ruling | None:
    if at.before is None or not at.intact:
        return None
    found = shape_break(at.before.call.request, at.call.request)
    if found is None:
        return None
    text = f"prefix breaks at {found}{compared(at)}; the words are the same"
    return Ruling("broken", text, "inferred", (("shape_changed", found),), fix_for("shape_changed", found), missed=True)


def _too_early(at: Situation) -> Ruling | None:
    if at.before is None or not at.intact:
        return None
    earlier = at.before.call
    first = earlier.response.first_token_at if earlier.response is not None else None
    ready = first if first is not None else earlier.ended_at
    if ready is None or ready <= at.call.at:
        return None
    text = f"the prefix is intact, but call {earlier.number} had not begun to answer: nothing of it was cached yet"
    return Ruling("too_early", text, "inferred", (), f"send it after call {earlier.number} begins to answer", True)


def _partly(at: Situation) -> Ruling | None:
    """A part was served, and the provider does not promise more."""
    if not at.reported or (at.rule.promised and at.expected is not None and at.reported * 2 < at.expected):
        return None
    fewer = f", fewer than the {at.expected:,} that were sent before" if at.expected else ""
    return Ruling("served", served(at) + fewer, "wire")


def _unpromised(at: Situation) -> Ruling | None:
    if at.rule.promised and at.expected is not None:
        return None
    return Ruling("unknown", f"the prefix is intact and was not served; {_no_promise(at.rule)}")


def _no_promise(rule: CacheRule) -> str:
    if rule.promised:
        return "the cached part is unknown"
    return "no rule is known" if rule.name == "other" else f"{rule.name} promises no hit"


def why_not_served(at: Situation) -> str:
    """Return why the tokens in front of a break were not served."""
    if not at.rule.promised:
        return _no_promise(at.rule)
    if at.kept is not None and at.idle_ms is not None and at.idle_ms >= at.kept * 1000:
        return f"{at.rule.name} keeps entries {span(at.kept * 1000)} without use, and {span(at.idle_ms)} had passed"
    return _LOST


def _routed(at: Situation) -> Ruling | None:
    since = f"{span(at.idle_ms)} after" if at.idle_ms is not None else "after"
    text = f"the prefix is intact and came {since} call {last_sent(at)}: {_LOST}"
    key = at.rule.key
    steer = f"send the same {key} in every call" if key and key not in at.call.request.settings else None
    return Ruling("routed_elsewhere", text, "inferred", (), steer, missed=True)


_RULES: tuple[Rule, ...] = (
    _failed,
    _reported_reason,
    _nothing_before,
    _held,
    _answer_changed,
    _served_all,
    _never_asked,
    _too_short,
    _elsewhere,
    _broken,
    _unsaid,
    _marker,
    _setting,
    _expired,
    _shape,
    _too_early,
    _partly,
    _unpromised,
    _routed,
)
