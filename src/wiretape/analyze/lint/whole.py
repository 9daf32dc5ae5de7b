"""The rule about tapes that lack something."""

from __future__ import annotations

from collections.abc import Iterable

from wiretape.analyze.lint.base import LintFinding, Rule, Subject


class IncompleteTape(Rule):
    id = "WT015"
    name = "incomplete-tape"
    severity = "error"
    summary = "The tape lacks something that was recorded, or should have been."
    explains = (
        "The file ends in the middle of a document, the recorder wrote that it could not keep everything (a full disk, "
        "say), or it never closed the tape: it was killed, or is still at work. What the other rules say holds for "
        "what is there; a tool call without its result, or a run without its end, may only be missing from the tape."
    )
    mend = "record it again, or get the whole file; while a recorder is at work, wait for its end"

    def check(self, subject: Subject) -> Iterable[LintFinding]:
        for gap in subject.gaps:
            yield self.finding(gap)
