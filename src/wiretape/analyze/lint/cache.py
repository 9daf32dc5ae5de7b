"""The rule about prompts that do not stay the same at their start."""

from __future__ import annotations

from collections.abc import Iterable

from wiretape.analyze.lint.base import LintFinding, Rule, Subject
from wiretape.analyze.moved import Break
from wiretape.analyze.prefix import breaks, consecutive
from wiretape.model.call import ModelCall



class UnstablePrefix(Rule):
    id = "WT013"
    name = "unstable-prefix"
    severity = "warning"
    summary = "A request does not begin as the one before it in its thread did."
    explains = (
        "Prompt caches serve what a request has in common with an earlier one, from its first byte on. A clock, a "
        "nonce or a changed tool near the start makes every call pay for its whole history. The first difference is "
        "named with its place, its character (counted from 0) and both values; what recurs at the same place is told "
        "once for each thread. Moved cache markers do not count. Not compared: histories that only the provider has, "
        "another model or another provider in the same thread, and a handoff to another agent."
    )
    mend = "put what changes at the end of the prompt, and keep what stands before it byte for byte"

    def check(self, subject: Subject) -> Iterable[LintFinding]:
        places: dict[tuple[int, str, str], list[tuple[ModelCall, ModelCall, Break]]] = {}
        for before, call in consecutive(subject.run):
            if not _comparable(before, call) or subject.steps[call.number].cause.kind == "handoff":
                continue
            for found in breaks(before.request, call.request):
                if found.path.startswith("previous_response"):
                    continue
                key = (subject.steps[call.number].thread, found.path, found.what)
                places.setdefault(key, []).append((before, call, found))
        for (before, call, found), *again in places.values():
            times = f", and there in {len(again)} more" if again else ""
            at = f", at character {found.character}" if found.character is not None else ""
            text = f"the prefix breaks{at}: {found.what} (compared with call {before.number}{times})"
            values = {"before": found.before or "(absent)", "after": found.after or "(absent)"}
            yield self.finding(text, call, found.path, values=values)


def _comparable(before: ModelCall, call: ModelCall) -> bool:
    """Whether one cache can serve both: the same model, spoken to in the same way."""
    return (before.format, before.request.model, _host(before)) == (call.format, call.request.model, _host(call))


def _host(call: ModelCall) -> str:
    return "".join(call.url.split("/")[2:3])
