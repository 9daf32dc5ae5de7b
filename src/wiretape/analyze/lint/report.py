"""The printed shape of a lint run: what `wiretape lint --json` gives."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

from wiretape.analyze.lint.base import LintFinding, Severity


class TapeLint(BaseModel):
    """One tape's findings; `problem` says why it could not be read."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tape: str
    findings: list[LintFinding] = Field(default_factory=list)
    problem: str | None = None


class LintReport(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    tapes: list[TapeLint]
    rules: list[str] = Field(description="the rules that were used")
    errors: int
    warnings: int
    infos: int
    unreadable: int


def lint_report(tapes: Sequence[TapeLint], rules: Sequence[str]) -> LintReport:
    def count(severity: Severity) -> int:
        return sum(finding.severity == severity for tape in tapes for finding in tape.findings)

    return LintReport(
        tapes=list(tapes),
        rules=list(rules),
        errors=count("error"),
        warnings=count("warning"),
        infos=count("info"),
        unreadable=sum(tape.problem is not None for tape in tapes),
    )
