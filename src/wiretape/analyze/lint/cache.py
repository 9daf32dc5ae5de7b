"""The rule about unstable prompt prefixes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wiretape.analyze.cache.report import CacheBreak, CacheCall
from wiretape.analyze.lint.base import LintFinding, LintRule, Subject

# A switch of the model uses another cache; a compaction replaces the history on purpose.
_INTENDED = frozenset({"model_switch", "compaction"})
# Changes that are unstable between agents, too; other differences between agents may be intended.
_VOLATILE = frozenset({"clock", "date", "uuid", "nonce", "temporary_path", "tools_reordered"})


class UnstablePrefix(LintRule):
    id = "WT013"
    name = "unstable-prefix"
    severity = "warning"
    summary = "A request does not start like the one before it, so the prompt cache cannot serve it."
    explains = (
        "A prompt cache serves the common prefix of a request and an earlier one. A clock, a nonce or a changed tool "
        "near the start makes every call pay for its whole history. The finding has the path of the first difference, "
        "its character (counted from 0), its kind, and both values. Repeated breaks at the same place are one finding "
        "for each thread, with the input tokens that were not served. Moved cache markers are ignored, as are "
        "histories that only the provider has, another model, a handoff to another agent, and a compaction. "
        "`wiretape cache` explains the cache for every call."
    )
    mend = "put changing text at the end of the prompt, and keep the text before it byte for byte"

    def check(self, subject: Subject) -> Iterable[LintFinding]:
        places: dict[tuple[int, str, str], list[tuple[CacheCall, CacheBreak]]] = {}
        for call in subject.cache.calls:
            if call.verdict == "broken" and not _is_intended(subject, call):
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
        first = all(one.breaks[0] is broken for one, broken in same)  # a break behind another one costs nothing
        lost = sum(one.lost_tokens or 0 for one, _ in same) if first else 0
        if lost:
            text += f"; {lost:,} input tokens were not served"
        values = {"before": found.before or "(absent)", "after": found.after or "(absent)"}
        mend = call.mend if first else None
        return self.finding(text, subject.steps[call.call].call, found.path, values=values, mend=mend)


def _is_intended(subject: Subject, call: CacheCall) -> bool:
    """True if a program breaks the prefix on purpose."""
    step, kinds = subject.steps[call.call], {found.kind for found in call.breaks}
    if step.cause.kind == "handoff" or kinds & _INTENDED:
        return True
    before = subject.steps.get(call.compared_with or 0)
    return before is not None and before.thread != step.thread and not kinds <= _VOLATILE
