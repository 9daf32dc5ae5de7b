"""What tools say in a rerun: as they did in the recorded run, as our own subagents answered, or as a hook has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from wiretape.compare.mask import Masker
from wiretape.compare.tool_results import (
    RecordedToolResult,
    ToolMatch,
    ToolResults,
    parsed_arguments,
    results_in_requests,
)
from wiretape.model.call import ToolCall, ToolResult
from wiretape.model.run import Run
from wiretape.rerun.plan import Take, results_in
from wiretape.rerun.tasks import passed_on
from wiretape.rerun.values import ToolHook


class Tools:
    """The tools of one run. `told`: results that the wire does not show, and that go before those it does."""

    def __init__(
        self, run: Run, takes: Sequence[Take], masker: Masker, told: Sequence[RecordedToolResult], hook: ToolHook | None
    ) -> None:
        self.final: dict[int, str] = {}  # agent -> what it said last, in our run
        self.cut_off: set[int] = set()  # agents that could not go on
        self._run = run
        self._takes = takes
        self._masker = masker
        self._told = told
        self._hook = hook

    @cached_property
    def _book(self) -> ToolResults:
        own = {one.name for one in self._told}
        wire = results_in_requests(self._run, skip=own.__contains__)
        return ToolResults([*self._told, *wire], self._masker)

    def recorded(self, before: Take, take: Take) -> list[ToolResult]:
        """What the tools said, in the order of the request that tells it."""
        order = {block.id: place for place, block in enumerate(results_in(take))}
        found = []
        for use in before.uses:
            if use.result is not None and use.result_call == take.number:
                found.append(self._hooked(use.call, replace(use.result, id=use.call.id, kind=use.call.kind)))
        known = [result for result in found if result is not None]
        return sorted(known, key=lambda result: order.get(result.id, len(order)))

    def answer(self, call: ToolCall, before: Take | None, position: int) -> ToolResult | None:
        """What a tool says that our answer asks for; None where nobody knows.

        `before`: the recorded call whose answer ours stands for, if the runs have not parted; `position`: which of its
        tools this is.
        """
        return self._hooked(call, self._from_tape(call, before, position))

    def _from_tape(self, call: ToolCall, before: Take | None, position: int) -> ToolResult | None:
        uses = before.uses if before is not None else ()
        use = uses[position] if position < len(uses) and uses[position].call.name == call.name else None
        if use is not None and use.agent in self.cut_off:
            return None  # what it gave on the tape is not what this run's subagent would have given
        if use is not None and use.result is not None and use.agent is not None and use.agent in self.final:
            child = next(t for t in reversed(self._takes) if t.step.agent == use.agent)
            text = passed_on(use.result.text, child, self.final[use.agent])
            return replace(use.result, id=call.id, name=use.result.name, text=text, kind=call.kind)
        found = self._book.take(call.name, parsed_arguments(call.arguments), repeat=True)
        if not isinstance(found, ToolMatch):
            return None
        told = found.told
        named_so = told.use.result.name if told.use is not None and told.use.result is not None else None
        return ToolResult(call.id, named_so or call.name, told.text, told.is_error, told.parts, call.kind)

    def _hooked(self, call: ToolCall, found: ToolResult | None) -> ToolResult | None:
        return self._hook(call, found) if self._hook is not None else found
