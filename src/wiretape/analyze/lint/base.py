"""Lint rules, the run that they check, their findings, and the JSON of `wiretape lint --json`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from wiretape.analyze.cache.diagnosis import diagnose
from wiretape.analyze.cache.report import CacheReport
from wiretape.analyze.repeats import RepeatedCalls
from wiretape.model.call import ModelCall
from wiretape.model.http import Exchange
from wiretape.model.run import Run, Step, Thread
from wiretape.model.wording import clip

Severity: TypeAlias = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
_SHOWN = 200  # characters of a value


class LintFinding(BaseModel):
    """A problem that a rule found."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rule: str
    name: str
    severity: Severity
    call: int | None = Field(None, description="number of the model call")
    exchange: int | None = None
    path: str | None = Field(None, description="path in the request or the answer")
    text: str
    values: dict[str, str] = Field(default_factory=dict, description="the value found, and the value expected")
    mend: str = Field(description="the next step")


@dataclass(frozen=True)
class Subject:
    """A run to check, with its exchanges if the caller has them."""

    run: Run
    exchanges: Sequence[Exchange] = ()
    redact: Sequence[str] = ()  # additional patterns of secrets
    gaps: Sequence[str] = ()  # missing parts of the tape

    @cached_property
    def steps(self) -> Mapping[int, Step]:
        return {step.call.number: step for step in self.run.steps}

    @cached_property
    def places(self) -> Mapping[int, int]:
        """Position of each call in its thread."""
        return {call: place for thread in self.run.threads for place, call in enumerate(thread.calls)}

    @cached_property
    def cache(self) -> CacheReport:
        """The cache diagnosis, computed once."""
        return diagnose(self.run)

    @cached_property
    def repeats(self) -> RepeatedCalls:
        """The repeated tool calls, computed once."""
        return RepeatedCalls(self.run)

    @property
    def calls(self) -> Iterator[ModelCall]:
        """The inference calls, by number."""
        return (step.call for step in self.run.steps if step.call.kind == "inference")

    def thread(self, call: int) -> Thread:
        return self.run.threads[self.steps[call].thread]


class LintRule(ABC):
    """A lint rule. Its class attributes are its documentation in `wiretape lint --explain` and docs/lint.md."""

    id: ClassVar[str]
    name: ClassVar[str]
    severity: ClassVar[Severity]
    summary: ClassVar[str]  # one line
    explains: ClassVar[str]  # why it matters, and what the rule checks and ignores
    mend: ClassVar[str]  # the next step

    @abstractmethod
    def check(self, subject: Subject) -> Iterable[LintFinding]:
        """Yield the findings in a run, in the order of calls."""

    def finding(
        self,
        text: str,
        call: ModelCall | None = None,
        path: str | None = None,
        *,
        values: Mapping[str, str] | None = None,
        severity: Severity | None = None,
        mend: str | None = None,
        exchange: int | None = None,
    ) -> LintFinding:
        """Make a finding of this rule. The options replace the rule's defaults."""
        return LintFinding(
            rule=self.id,
            name=self.name,
            severity=severity or self.severity,
            call=call.number if call is not None else None,
            exchange=call.exchange if call is not None else exchange,
            path=path,
            text=text,
            values={label: shown(value) for label, value in (values or {}).items()},
            mend=mend or self.mend,
        )


def shown(value: str) -> str:
    """A value, cut to a length that a person reads."""
    return clip(value, _SHOWN)


def tool_call_path(call: ModelCall, index: int) -> str:
    """Path of a tool call in an answer."""
    return f"answer.tool_calls[{index}]"


class TapeLint(BaseModel):
    """The findings of one tape. `problem`: why it could not be read."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tape: str
    findings: list[LintFinding] = Field(default_factory=list)
    problem: str | None = None


class LintReport(BaseModel):
    """The findings of all tapes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tapes: list[TapeLint]
    rules: list[str] = Field(description="ids of the rules that were used")
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
