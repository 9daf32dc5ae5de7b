"""A run as expressions and commands ask about it: look-ups by stop, each text put together once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wiretape.debug.annotations import Annotations, CacheVerdict, CallFinding
from wiretape.debug.expression.values import messages_text
from wiretape.debug.timeline import Stop, Timeline
from wiretape.errors import UsageError
from wiretape.model.call import ModelCall
from wiretape.model.run import Agent, Run, Step


class AnnotatedRun:
    """The timeline and what is known beside it. Findings and drift are fetched when first asked for."""

    def __init__(self, run: Run, annotations: Annotations) -> None:
        self.timeline, self.annotations = Timeline(run), annotations
        self.most_input: int | None = None  # found when first asked for
        self._failed: frozenset[int] | None = None
        self._texts: dict[int, str] = {}
        self._folded: dict[int, str] = {}
        self._findings: Mapping[int | None, Sequence[CallFinding]] | None = None
        self._verdicts: Mapping[int, CacheVerdict] | None = None
        self._drift: Mapping[int, Sequence[str]] | None = None

    def number(self, stop: Stop) -> int:
        """The call at a stop. Raises UsageError at the start and the end, saying where to go."""
        if stop.call is not None:
            return stop.call
        if not self.timeline.calls:
            raise UsageError("the tape has no model calls")
        if stop.phase == "start":
            raise UsageError("nothing has been sent yet: step, next or continue goes on to the first call")
        raise UsageError(f"the tape has ended here: reverse-step goes back to call {self.timeline.calls[-1]}")

    def step(self, stop: Stop) -> Step:
        return self.timeline.step(self.number(stop))

    def call(self, stop: Stop) -> ModelCall:
        return self.step(stop).call

    def agent(self, stop: Stop) -> Agent:
        return self.timeline.run.agents[self.step(stop).agent]

    def why(self, stop: Stop) -> str:
        step = self.step(stop)
        return self.annotations.why(step) if self.annotations.why is not None else step.cause.kind.replace("_", " ")

    def asked(self, stop: Stop) -> list[str]:
        return [tool.name for tool in self.call(stop).tool_calls]

    def new_text(self, stop: Stop) -> str:
        step = self.step(stop)
        return messages_text(step.call.request.messages[step.new_from :])

    def text(self, stop: Stop) -> str:
        """All that a call brings: what its request adds, and the answer."""
        number = self.number(stop)
        if number not in self._texts:
            response = self.call(stop).response
            answer = messages_text(response.messages) if response is not None else ""
            self._texts[number] = f"{self.new_text(stop)}\n{answer}"
        return self._texts[number]

    def folded(self, number: int) -> str:
        """The text of a call for searches that do not mind upper and lower case."""
        if number not in self._folded:
            self._folded[number] = self.text(Stop("answer", number)).casefold()
        return self._folded[number]

    def errors(self, stop: Stop) -> list[str]:
        """What failed, in the words that can be asked for; empty where nothing did."""
        call = self.call(stop)
        response = call.response
        if response is None:
            return [str(call.ended)] if call.ended is not None else []
        said = [str(response.status)] if response.status >= 400 else []
        if response.error is not None:
            error = response.error
            said += [str(error.status), *(part for part in (error.type, error.code, error.message) if part)]
        if response.finish == "error":
            said.append("error")
        if not response.complete and call.ended is not None:
            said.append("cut" if call.ended == "complete" else str(call.ended))
        return list(dict.fromkeys(said))

    @property
    def failed(self) -> frozenset[int]:
        """The calls that failed or were cut."""
        if self._failed is None:
            self._failed = frozenset(n for n in self.timeline.calls if self.errors(Stop("answer", n)))
        return self._failed

    # -- what others know ------------------------------------------------------------------------------------------

    def findings(self, number: int | None = None) -> Sequence[CallFinding]:
        """The findings about a call; with None, those about no call."""
        return self._by_call().get(number, ())

    def all_findings(self) -> list[CallFinding]:
        return [finding for findings in self._by_call().values() for finding in findings]

    def _by_call(self) -> Mapping[int | None, Sequence[CallFinding]]:
        if self._findings is None:
            found: dict[int | None, list[CallFinding]] = {}
            for finding in self.annotations.findings() if self.annotations.findings is not None else ():
                found.setdefault(finding.call, []).append(finding)
            self._findings = found
        return self._findings

    def finding_kinds(self, stop: Stop) -> list[str]:
        return [name for one in self.findings(self.number(stop)) for name in (one.kind, one.id) if name]

    def drifts(self, stop: Stop) -> Sequence[str]:
        if self._drift is None:
            self._drift = self.annotations.drift() if self.annotations.drift is not None else {}
        return self._drift.get(self.number(stop), ())

    def cache_verdict(self, number: int) -> CacheVerdict | None:
        if self._verdicts is None:
            self._verdicts = self.annotations.cache() if self.annotations.cache is not None else {}
        return self._verdicts.get(number)
