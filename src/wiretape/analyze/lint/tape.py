"""Rules about the tape itself: secrets in it, and what it lacks."""

from __future__ import annotations

from collections.abc import Iterable

from wiretape.analyze.lint.base import LintFinding, LintRule, Severity, Subject
from wiretape.tape.editing.secrets import secrets_in
from wiretape.tape.redaction import Redactor

_ACCOUNTS = {"openai-organization", "openai-project", "chatgpt-account-id", "anthropic-organization-id"}


class SecretInTape(LintRule):
    id = "WT014"
    name = "secret-in-tape"
    severity = "error"
    summary = "A secret stands in the tape."
    explains = (
        "Recording replaces secrets; a tape that was edited by hand, imported, or recorded by another tool or an older "
        "version may still hold some: credential headers, members named like credentials, known key shapes, the "
        "`redact` patterns of `[tool.wiretape]`, and credential values wherever else they occur. "
        "A word in a credential header, such as tests send, is none; an account's id is only a warning. Only the kind "
        "and the place are printed, never a part of the secret."
    )
    mend = "wiretape redact TAPE; if the tape was ever shared, revoke the key as well"

    def check(self, subject: Subject) -> Iterable[LintFinding]:
        if not subject.exchanges:
            return
        calls = {step.call.exchange: step.call for step in reversed(subject.run.steps)}
        for secret in secrets_in(subject.exchanges, Redactor(subject.redact)):
            account = secret.kind in _ACCOUNTS
            text = f"{'an account id' if account else 'a secret'} ({secret.kind}) stands in x{secret.exchange}"
            call = calls.get(secret.exchange)
            severity: Severity | None = "warning" if account else None
            yield self.finding(text, call, secret.path, exchange=secret.exchange, severity=severity)


class IncompleteTape(LintRule):
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
