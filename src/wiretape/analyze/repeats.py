"""Detect repeated tool calls with equal results, and loops that repeat without progress.

`wiretape stats` and `wiretape lint` both report them. Arguments are compared as JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from wiretape.model.run import Run, Step, ToolUse
from wiretape.model.wording import numbered
from wiretape.runs.content_keys import canonical, spelled

ROUNDS = 3  # equal rounds that count as a runaway loop
LONGEST_CYCLE = 4  # calls in one round
_EMPTY = 12  # a result with fewer characters is only an acknowledgement


@dataclass(frozen=True, slots=True)
class Repeat:
    """Consecutive calls of one tool with equal arguments and equal results."""

    uses: tuple[ToolUse, ...]

    @property
    def last(self) -> ToolUse:
        return self.uses[-1]

    @property
    def text(self) -> str:
        numbers = list(dict.fromkeys(use.call_number for use in self.uses))
        name, times = self.last.call.name, len(self.uses)
        where = numbered("call", numbers)
        return f"{name} was asked for {times} times with the same arguments and said the same ({where})"


@dataclass(frozen=True, slots=True)
class Runaway:
    """A cycle of `length` calls, repeated `rounds` times. `arguments` and `result` are those of one tool call."""

    calls: tuple[int, ...]
    length: int
    rounds: int
    tools: tuple[str, ...]
    arguments: str
    result: str

    @property
    def text(self) -> str:
        cycle = "call" if self.length == 1 else f"cycle of {self.length} calls"
        where = f"calls {self.calls[0]} to {self.calls[-1]}"
        return f"the same {cycle} {self.rounds} times in a row ({where}): {', '.join(self.tools)}"


@dataclass(frozen=True)
class RepeatedCalls:
    """The repeated tool calls of a run. Calls of a runaway loop are not reported as repeats, too."""

    run: Run

    @cached_property
    def repeats(self) -> tuple[Repeat, ...]:
        running_away = {number for runaway in self.runaways for number in runaway.calls}
        found = []
        for uses in self._equal_calls():
            again = tuple(use for use in self._consecutive(uses) if use.call_number not in running_away)
            if len(again) > 1:
                found.append(Repeat(again))
        return tuple(found)

    @cached_property
    def runaways(self) -> tuple[Runaway, ...]:
        return tuple(self._runaways())

    # -- repeated tool calls ---------------------------------------------------------------------------------------

    def _equal_calls(self) -> Iterator[list[ToolUse]]:
        """Yield the answered calls of one thread that have the same tool and equal arguments."""
        asked: dict[tuple[int, str, str], list[ToolUse]] = {}
        for use in self.run.tool_uses:
            arguments = canonical(use.call.arguments)
            if use.call.kind != "server" and use.result is not None and arguments != "{}":
                asked.setdefault((self._steps[use.call_number].thread, use.call.name, arguments), []).append(use)
        yield from asked.values()

    def _consecutive(self, uses: Sequence[ToolUse]) -> list[ToolUse]:
        """Return the first uses that follow each other directly with equal results; empty if the result is short."""
        same = [uses[0]]
        for use in uses[1:]:
            if self._follows(same[-1], use) and _result(use) == _result(same[-1]):
                same.append(use)
            elif len(same) > 1:
                break
            else:
                same = [use]
        return same if len(_result(same[0])) >= _EMPTY else []

    def _follows(self, one: ToolUse, other: ToolUse) -> bool:
        """True if `other` is in the same answer as `one`, or in the next answer of the thread."""
        return self._places[other.call_number] - self._places[one.call_number] <= 1

    # -- runaway loops ---------------------------------------------------------------------------------------------

    def _runaways(self) -> Iterator[Runaway]:
        for rounds in self._stretches():
            at = 0
            while at < len(rounds):
                found = next((f for length in range(1, LONGEST_CYCLE + 1) if (f := _cycle(rounds, at, length))), None)
                if found is None:
                    at += 1
                    continue
                if not self._others_at_work(found):
                    yield found
                at += len(found.calls)

    def _others_at_work(self, runaway: Runaway) -> bool:
        """True if other agents made calls between the rounds: the loop may be waiting for them."""
        first, last = runaway.calls[0], runaway.calls[-1]
        agent = self._steps[first].agent
        return any(self._steps[n].agent != agent for n in range(first, last) if n in self._steps)

    def _stretches(self) -> Iterator[list[_Round]]:
        """Yield, for each thread and turn, the consecutive calls that requested tools."""
        uses: dict[int, list[ToolUse]] = {}
        for use in self.run.tool_uses:
            if use.call.kind != "server":
                uses.setdefault(use.call_number, []).append(use)
        for thread in self.run.threads:
            stretch: list[_Round] = []
            for number in thread.calls:
                asked = uses.get(number)
                if asked is None or self._steps[number].cause.kind in ("turn_start", "subagent"):
                    yield stretch
                    stretch = []
                if asked is not None:
                    named = tuple((use.call.name, canonical(use.call.arguments)) for use in asked)
                    stretch.append(_Round(number, named, tuple(_result(use) for use in asked)))
            yield stretch

    @cached_property
    def _steps(self) -> dict[int, Step]:
        return {step.call.number: step for step in self.run.steps}

    @cached_property
    def _places(self) -> dict[int, int]:
        """Position of each call in its thread."""
        return {call: place for thread in self.run.threads for place, call in enumerate(thread.calls)}


@dataclass(frozen=True, slots=True)
class _Round:
    """The tool calls of one model call, and their results."""

    call: int
    asked: tuple[tuple[str, str], ...]  # name, arguments
    got: tuple[str, ...]


def _result(use: ToolUse) -> str:
    if use.result is None:
        return ""
    return use.result.text.strip() + "".join(spelled(part) for part in use.result.parts)


def _cycle(rounds: Sequence[_Round], at: int, length: int) -> Runaway | None:
    """Return the cycle of this length that starts at `at`, if it is repeated often enough."""
    end = at + length
    while end < len(rounds) and _alike(rounds[end - length], rounds[end], last=end == len(rounds) - 1):
        end += 1
    times = (end - at) // length
    if times < ROUNDS:
        return None
    own = rounds[at : at + times * length]
    tools = tuple(name for one in own[:length] for name, _ in one.asked)
    return Runaway(tuple(one.call for one in own), length, times, tools, own[-1].asked[0][1], own[0].got[0])


def _alike(one: _Round, other: _Round, last: bool) -> bool:
    """True if a round repeats another. The last round of a recording may have no results yet."""
    if one.asked != other.asked:
        return False
    return one.got == other.got or (last and not any(other.got))
