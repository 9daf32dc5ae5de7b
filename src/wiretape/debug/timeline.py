"""The stops of a run in one order, and which agent called which.

A model call is to this debugger what a line is to gdb, and a subagent is what a called function is. Each call has one
stop before its request, one after its answer, and one at each tool that the answer calls. Calls are in the order of
their numbers, so the order does not depend on which concurrent call ended first. `start` comes before the first call
and `end` after the last.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from wiretape.errors import UsageError
from wiretape.model.run import Run, Step, ToolUse

Phase: TypeAlias = Literal["start", "request", "answer", "tool", "end"]


@dataclass(frozen=True, slots=True)
class Stop:
    """A place where the debugger can stop. `call` is None at the ends; `tool` is the index of the tool call."""

    phase: Phase
    call: int | None = None
    tool: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Activation:
    """The calls of an agent from one start: what a function's activation record is to gdb.

    A root agent has one activation. A subagent has one for each start; `starter` is the call that started it.
    A side call has its own, and `starter` is the call of the loop that it accompanies.
    """

    agent: int
    calls: tuple[int, ...]
    starter: int | None = None
    side: bool = False
    nth: int = 0  # counts the activations of one agent that one call started


@dataclass(frozen=True, slots=True)
class StackFrame:
    """A frame of a backtrace, numbered from the innermost. `tool`: the tool call that started the inner frame."""

    number: int
    activation: Activation
    call: int
    tool: ToolUse | None = None


class Timeline:
    """The stops of a run, indexed once; every method is a look-up."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.calls: tuple[int, ...] = tuple(step.call.number for step in run.steps)
        self._steps = dict(zip(self.calls, run.steps, strict=True))
        self._uses: dict[int, list[ToolUse]] = {}
        for use in run.tool_uses:
            self._uses.setdefault(use.call_number, []).append(use)
        self.stops: tuple[Stop, ...] = tuple(self._all_stops())
        self._places = {stop: place for place, stop in enumerate(self.stops)}
        self.answers = [place for place, stop in enumerate(self.stops) if stop.phase == "answer"]
        self.activations: list[Activation] = []
        self._activation_of: dict[int, Activation] = {}
        self._activate()
        self._from_tool: dict[tuple[int, int], Activation] = {}
        for activation in self.activations:
            starting = self.started_by(activation)
            if starting is not None:
                self._from_tool.setdefault((starting.call_number, starting.index), activation)
        self.root_calls = [n for n in self.calls if self._is_root(self._activation_of[n])]
        self._before = self._calls_before()

    def _all_stops(self) -> list[Stop]:
        stops = [Stop("start")]
        for number in self.calls:
            stops += [Stop("request", number), Stop("answer", number)]
            stops += [Stop("tool", number, use.index) for use in self.uses(number)]
        return [*stops, Stop("end")]

    def _activate(self) -> None:
        """Group the calls of each agent by the call that started it."""
        starter: dict[int, int | None] = {}  # agent -> the call that started it last
        starts: Counter[int] = Counter()  # agent -> how often it was started
        found: dict[tuple[int, int | None, int, int], list[int]] = {}  # agent, starter, which start, side call
        for number in self.calls:
            step = self._steps[number]
            if step.cause.kind == "side_call":
                found[step.agent, self._earlier(step.cause.call, number), 0, number] = [number]
                continue
            if step.cause.kind == "subagent":
                starter[step.agent] = self._earlier(step.cause.call, number)
                starts[step.agent] += 1
            elif step.agent not in starter:
                agent = self.run.agents[step.agent]
                starter[step.agent] = self._earlier(agent.started_by, number) if agent.parent is not None else None
            found.setdefault((step.agent, starter[step.agent], starts[step.agent], 0), []).append(number)
        siblings: Counter[tuple[int, int | None]] = Counter()
        for (agent_number, started, _, side), calls in found.items():
            activation = Activation(agent_number, tuple(calls), started, bool(side), siblings[agent_number, started])
            siblings[agent_number, started] += not side
            self.activations.append(activation)
            self._activation_of.update(dict.fromkeys(calls, activation))

    def _earlier(self, call: int | None, number: int) -> int | None:
        return call if call is not None and call < number and call in self._steps else None

    @staticmethod
    def _is_root(activation: Activation) -> bool:
        return activation.starter is None and not activation.side

    def _calls_before(self) -> dict[int, int]:
        """Map each call to the previous call of its agent. Side calls are left out."""
        before, last = {}, dict[tuple[int, bool], int]()
        for number in self.calls:
            key = (self._steps[number].agent, self._activation_of[number].side)
            if key in last and not key[1]:
                before[number] = last[key]
            last[key] = number
        return before

    # -- look-ups --------------------------------------------------------------------------------------------------

    @property
    def end(self) -> int:
        """The index of the last stop; the first is 0."""
        return len(self.stops) - 1

    def place(self, stop: Stop) -> int:
        """The index of a stop. Raises KeyError if the run does not have it."""
        return self._places[stop]

    def find(self, stop: Stop) -> int | None:
        return self._places.get(stop)

    def step(self, call: int) -> Step:
        """The step of a call. Raises UsageError if the tape has no such call."""
        if call not in self._steps:
            raise UsageError(f"the tape has no call {call}; it has {self.extent()}")
        return self._steps[call]

    def has(self, call: int) -> bool:
        return call in self._steps

    def extent(self) -> str:
        """`calls 1 to 4`."""
        if not self.calls:
            return "no model calls"
        return "call 1" if len(self.calls) == 1 else f"calls {self.calls[0]} to {self.calls[-1]}"

    def uses(self, call: int) -> Sequence[ToolUse]:
        """The tool calls of a call's answer, with their results."""
        return self._uses.get(call, ())

    def use(self, stop: Stop) -> ToolUse | None:
        """The tool use at a `tool` stop."""
        if stop.phase != "tool" or stop.call is None:
            return None
        return next((use for use in self.uses(stop.call) if use.index == stop.tool), None)

    def started_at(self, stop: Stop) -> Activation | None:
        """The activation of the subagent that the tool at a stop started."""
        return self._from_tool.get((stop.call, stop.tool)) if stop.call is not None and stop.tool is not None else None

    def request(self, call: int) -> int:
        return self._places[Stop("request", call)]

    def answer(self, call: int) -> int:
        return self._places[Stop("answer", call)]

    def activation(self, call: int) -> Activation:
        return self._activation_of[call]

    def call_before(self, call: int) -> int | None:
        """The previous call of the same agent."""
        return self._before.get(call)

    def thread_before(self, call: int) -> int | None:
        """The previous call of its thread; for a thread's first call, the call that the thread forked from."""
        step = self._steps[call]
        thread = self.run.threads[step.thread]
        at = bisect_left(thread.calls, call)
        if at < len(thread.calls) and thread.calls[at] == call:
            return thread.calls[at - 1] if at > 0 else thread.from_call
        return None

    def started_by(self, activation: Activation) -> ToolUse | None:
        """The tool use that started an activation, if it is known."""
        if activation.starter is None or activation.side:
            return None
        uses, cause = self.uses(activation.starter), self._steps[activation.calls[0]].cause
        own = [use for use in uses if use.agent == activation.agent and use.call.name in cause.tools]
        own = own or [use for use in uses if use.agent == activation.agent or use.call.name in cause.tools]
        if not own:
            return None
        # One call may send several messages to one agent; they start its activations in order.
        return own[min(activation.nth, len(own) - 1)]

    def frames(self, call: int) -> list[StackFrame]:
        """The backtrace of a call, innermost frame first."""
        frames = [StackFrame(0, self._activation_of[call], call)]
        while (starter := frames[-1].activation.starter) is not None:
            tool = self.started_by(frames[-1].activation)
            frames.append(StackFrame(len(frames), self._activation_of[starter], starter, tool))
        return frames

    def depth(self, call: int) -> int:
        return len(self.frames(call)) - 1

    def next_answer(self, at: int, calls: Sequence[int] | None = None) -> int | None:
        """The first `answer` stop after `at`, of all calls or of these (sorted)."""
        places = self.answers if calls is None else [self.answer(number) for number in calls]
        found = bisect_right(places, at)
        return places[found] if found < len(places) else None

    def last_answer(self, at: int, calls: Sequence[int] | None = None) -> int | None:
        """The last `answer` stop before `at`, of all calls or of these (sorted)."""
        places = self.answers if calls is None else [self.answer(number) for number in calls]
        found = bisect_left(places, at) - 1
        return places[found] if found >= 0 else None
