"""The rule about prompts that do not stay the same at their start."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wiretape.analyze.cache.report import CacheBreak, CacheCall
from wiretape.analyze.lint.base import LintFinding, LintRule, Subject

# Another model is another cache from its first byte on; a history that is summed up is meant to be another one.
_MEANT = frozenset({"model_switch", "compaction"})
# What is unstable in the prompts of one agent after another, too; other differences may be meant there.
_MOVING = frozenset({"clock", "date", "uuid", "nonce", "temporary_path", "tools_reordered"})


class UnstablePrefix(LintRule):
    id = "WT013"
    name = "unstable-prefix"
    severity = "warning"
    summary = "A request does not begin as the one before it did, so that the cache cannot serve it."
    explains = (
        "Prompt caches serve what a request has in common with an earlier one, from its first byte on. A clock, a "
        "nonce or a changed tool near the start makes every call pay for its whole history. The first difference is "
        "named with its place, its character (counted from 0), what kind of thing it is, and both values; what recurs "
        "at the same place is told once for each thread, with the input tokens that were not served. Moved cache "
        "markers do not count. Not told: histories that only the provider has, another model, a handoff to another "
        "agent, a compaction. `wiretape cache` says of every call what the cache did."
    )
    mend = "put what changes at the end of the prompt, and keep what stands before it byte for byte"

    def check(self, subject: Subject) -> Iterable[LintFinding]:
        places: dict[tuple[int, str, str], list[tuple[CacheCall, CacheBreak]]] = {}
        for call in subject.cache.calls:
            if call.verdict == "broken" and _unmeant(subject, call):
                for found in call.breaks:
                    key = (subject.steps[call.call].thread, found.path, found.kind)
                    places.setdefault(key, []).append((call, found))
        for same in places.values():
            yield self._finding(subject, same)

    def _finding(self, subject: Subject, same: Sequence[tuple[CacheCall, CacheBreak]]) -> LintFinding:
        (call, found), *again = same
        at = f", at character {found.character}" if found.character is not None else ""
        text = f"the prefix breaks{at}: {found.what} (compared with call {call.compared_with})"
        if again:
            text += f"; there again in {len(again)} later {'call' if len(again) == 1 else 'calls'} of the thread"
        first = all(one.breaks[0] is broken for one, broken in same)  # what stands behind another break costs nothing
        lost = sum(one.lost_tokens or 0 for one, _ in same) if first else 0
        if lost:
            text += f"; {lost:,} input tokens were not served"
        values = {"before": found.before or "(absent)", "after": found.after or "(absent)"}
        mend = call.mend if first else None
        return self.finding(text, subject.steps[call.call].call, found.path, values=values, mend=mend)


def _unmeant(subject: Subject, call: CacheCall) -> bool:
    """Whether a break is none that a program is made to have."""
    step, kinds = subject.steps[call.call], {found.kind for found in call.breaks}
    if step.cause.kind == "handoff" or kinds & _MEANT:
        return False
    before = subject.steps.get(call.compared_with or 0)
    return before is None or before.thread == step.thread or kinds <= _MOVING
