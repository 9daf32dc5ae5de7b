"""Rules about the whole run: unstable prompt prefixes, secrets in the tape, and what it lacks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wiretape.analyze.cache.report import CacheBreak, CacheCall
from wiretape.analyze.lint.base import LintFinding, LintRule, Severity, Subject
from wiretape.tape.editing.secrets import secrets_in
from wiretape.tape.redaction import Redactor

# A switch of the model uses another cache; a compaction replaces the history on purpose.
_INTENDED = frozenset({"model_switch", "compaction"})
# Changes that are unstable between agents, too; other differences between agents may be intended.
_VOLATILE = frozenset({"clock", "date", "uuid", "nonce", "temporary_path", "tools_reordered"})
_ACCOUNTS = {"openai-organization", "openai-project", "chatgpt-account-id", "anthropic-organization-id"}


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


class SecretInTape(LintRule):
    id = "WT014"
    name = "secret-in-tape"
    severity = "error"
    summary = "The tape contains a secret."
    explains = (
        "Recording replaces secrets. A tape that was edited by hand, imported, or recorded by another tool or an older "
        "version may still contain some: credential headers, members named like credentials, known key shapes, the "
        "`redact` patterns of `[tool.wiretape]`, and credential values wherever they occur. Plain words in a "
        "credential header, as tests send them, are ignored; an account id is only a warning. The finding has the "
        "kind and the place of the secret, never its text."
    )
    mend = "wiretape redact TAPE; if the tape was ever shared, revoke the key as well"

    def check(self, subject: Subject) -> Iterable[LintFinding]:
        if not subject.exchanges:
            return
        calls = {step.call.exchange: step.call for step in reversed(subject.run.steps)}
        for secret in secrets_in(subject.exchanges, Redactor(subject.redact)):
            account = secret.kind in _ACCOUNTS
            text = f"{'an account id' if account else 'a secret'} ({secret.kind}) is in x{secret.exchange}"
            call = calls.get(secret.exchange)
            severity: Severity | None = "warning" if account else None
            yield self.finding(text, call, secret.path, exchange=secret.exchange, severity=severity)


class IncompleteTape(LintRule):
    id = "WT015"
    name = "incomplete-tape"
    severity = "error"
    summary = "The tape is incomplete."
    explains = (
        "The file ends inside a document, the recorder noted that it lost data (for example on a full disk), or the "
        "recorder never closed the tape: it was killed, or is still running. The other rules check the part that is "
        "there: a missing tool result may only be missing from the tape."
    )
    mend = "record it again, or get the complete file; if a recorder is still running, wait for its end"

    def check(self, subject: Subject) -> Iterable[LintFinding]:
        for gap in subject.gaps:
            yield self.finding(gap)
