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
