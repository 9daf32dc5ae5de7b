"""A run with its annotations, as expressions and commands read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from wiretape.debug.annotations import Annotations, CacheVerdict, CallFinding
from wiretape.debug.expression.values import messages_text
from wiretape.debug.timeline import Stop, Timeline
from wiretape.errors import UsageError
from wiretape.model.call import ModelCall
from wiretape.model.run import Agent, Run, Step


class AnnotatedRun:
    """The timeline of a run, and the facts about each call. Findings, verdicts and drift are computed on first use."""

    def __init__(self, run: Run, annotations: Annotations) -> None:
        self.timeline, self.annotations = Timeline(run), annotations
        self._texts: dict[int, str] = {}
        self._folded: dict[int, str] = {}

    def number(self, stop: Stop) -> int:
        """The call at a stop. Raises UsageError at the start and the end of the tape."""
        if stop.call is not None:
            return stop.call
        if not self.timeline.calls:
            raise UsageError("the tape has no model calls")
        if stop.phase == "start":
            raise UsageError("this is the start of the tape: step, next or continue goes to the first call")
        raise UsageError(f"this is the end of the tape: reverse-step goes back to call {self.timeline.calls[-1]}")

    def step(self, stop: Stop) -> Step:
        return self.timeline.step(self.number(stop))

    def call(self, stop: Stop) -> ModelCall:
        return self.step(stop).call

    def agent(self, stop: Stop) -> Agent:
        return self.timeline.run.agents[self.step(stop).agent]

    def why(self, stop: Stop) -> str:
        """Why the call was made."""
        step, why = self.step(stop), self.annotations.why
        return why(step) if why is not None else step.cause.kind.replace("_", " ")

    def new_text(self, stop: Stop) -> str:
        """The text that the call's request adds to its thread."""
        step = self.step(stop)
        return messages_text(step.call.request.messages[step.new_from :])

    def text(self, stop: Stop) -> str:
        """The text that the call's request adds, and its answer."""
        number = self.number(stop)
        if number not in self._texts:
            response = self.call(stop).response
            answer = messages_text(response.messages) if response is not None else ""
            self._texts[number] = f"{self.new_text(stop)}\n{answer}"
        return self._texts[number]

    def folded(self, number: int) -> str:
        """The text of a call, case-folded for searches."""
        if number not in self._folded:
            self._folded[number] = self.text(Stop("answer", number)).casefold()
        return self._folded[number]

    def errors(self, stop: Stop) -> list[str]:
        """Status, type, code and message of the call's error, as conditions match them; empty without an error."""
        call = self.call(stop)
        response = call.response
        if response is None:
            return [str(call.ended)] if call.ended is not None else []
        found = [str(response.status)] if response.status >= 400 else []
        if (error := response.error) is not None:
            found += [str(error.status), *(part for part in (error.type, error.code, error.message) if part)]
        if response.finish == "error":
            found.append("error")
        if not response.complete and call.ended is not None:
            found.append("cut" if call.ended == "complete" else str(call.ended))
        return list(dict.fromkeys(found))

    @cached_property
    def failed(self) -> frozenset[int]:
        """The calls that failed or were cut."""
        return frozenset(n for n in self.timeline.calls if self.errors(Stop("answer", n)))

    @cached_property
    def most_input(self) -> int:
        """The largest number of input tokens of a call."""
        usages = (step.call.usage for step in self.timeline.run.steps)
        return max((usage.input or 0 for usage in usages if usage is not None), default=0)

    # -- annotations -------------------------------------------------------------------------------------------------

    def findings(self, number: int | None = None) -> Sequence[CallFinding]:
        """The findings about a call; with None, the findings about the whole run."""
        return self._findings.get(number, ())

    def all_findings(self) -> list[CallFinding]:
        return [finding for findings in self._findings.values() for finding in findings]

    @cached_property
    def _findings(self) -> Mapping[int | None, Sequence[CallFinding]]:
        found: dict[int | None, list[CallFinding]] = {}
        for finding in self.annotations.findings() if self.annotations.findings is not None else ():
            found.setdefault(finding.call, []).append(finding)
        return found

    def finding_kinds(self, stop: Stop) -> list[str]:
        return [name for finding in self.findings(self.number(stop)) for name in (finding.kind, finding.id) if name]

    @cached_property
    def _drift(self) -> Mapping[int, Sequence[str]]:
        return self.annotations.drift() if self.annotations.drift is not None else {}

    def drift(self, stop: Stop) -> Sequence[str]:
        """How the call differs from its recording, in a replay."""
        return self._drift.get(self.number(stop), ())

    @cached_property
    def _verdicts(self) -> Mapping[int, CacheVerdict]:
        return self.annotations.cache() if self.annotations.cache is not None else {}

    def cache_verdict(self, number: int) -> CacheVerdict | None:
        return self._verdicts.get(number)
