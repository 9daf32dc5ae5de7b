"""Runs for the debugger's tests: real tapes with fixed annotations, and generated runs of any shape."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hypothesis import strategies as st

from tests.support.views import shown
from wiretape.cli.tapes import open_tape
from wiretape.debug.annotations import Annotations, CacheVerdict, CallFinding
from wiretape.debug.session import Debugger
from wiretape.model.call import (
    Block,
    CallRequest,
    CallResponse,
    Message,
    ModelCall,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
)
from wiretape.model.http import Ended
from wiretape.model.run import Agent, Cause, Run, Step, Thread, ToolUse, Turn
from wiretape.views.debug.reply import reply_view

CAPTURES = Path(__file__).parent.parent.parent / "captures"


def debugger(tape: str = "subagents", findings: Sequence[CallFinding] = ()) -> Debugger:
    """A debugger on one of the captures. The annotations are fixed, so that tests do not depend on other layers."""
    opened = open_tape(str(CAPTURES / f"{tape}.tape"))
    known = Annotations(
        name=f"{tape}.tape",
        started=opened.tape.header.started,
        exchanges={exchange.number: exchange for exchange in opened.tape.exchanges},
        why=lambda step: f"its cause is {step.cause.kind}",
        cache=lambda: {2: CacheVerdict("broken", "a clock in the system prompt")},
        findings=lambda: findings,
        drift=lambda: {3: ["the time differs"]},
        open_tape=lambda path: open_tape(str(CAPTURES / path)).run,
    )
    return Debugger(opened.run, known)


def type_in(debugger: Debugger, *lines: str, width: int = 80) -> str:
    """The transcript of typed lines and their replies."""
    said = []
    for line in lines:
        said.append(f"(wiretape) {line}".rstrip() + "\n")
        said.append(shown(reply_view(debugger.execute(line)), width))
    return "".join(said)


def last(debugger: Debugger, *lines: str, width: int = 80) -> str:
    """What a person saw after the last of some lines."""
    for line in lines[:-1]:
        assert debugger.execute(line).error is None, line
    return shown(reply_view(debugger.execute(lines[-1])), width)


# -- runs of any shape -------------------------------------------------------------------------------------------------

TOOLS = ("look", "ask", "write")
FINISHES = ("stop", "tool_calls", "length", "error", None)


@st.composite
def runs(draw: st.DrawFn, most: int = 8) -> Run:
    """A run: roots, subagents that earlier tool calls started, side calls, missing usages, missing answers."""
    return _Making(draw, draw(st.integers(0, most))).run()


class _Making:
    """Puts a run together, call by call."""

    def __init__(self, draw: st.DrawFn, count: int) -> None:
        self._draw, self._count = draw, count
        self._agents: list[Agent] = []
        self._calls: dict[int, list[int]] = {}  # agent -> its calls
        self._steps: list[Step] = []
        self._uses: list[ToolUse] = []

    def run(self) -> Run:
        for number in range(1, self._count + 1):
            self._add(number)
        numbers = [number for number in self._calls if self._calls[number]]
        threads = tuple(Thread(agent, agent, tuple(self._calls[agent])) for agent in numbers)
        turns = tuple(
            Turn(turn, f"request {turn}", tuple(steps))
            for turn in (1, 2)
            if (steps := [step for step in self._steps if step.turn == turn])
        )
        sides = tuple(step for step in self._steps if step.cause.kind == "side_call")
        return Run(tuple(self._steps), turns, tuple(self._agents), threads, tuple(self._uses), sides)

    def _pick(self, choices: Sequence[object]) -> int:
        return self._draw(st.integers(0, len(choices) - 1))

    def _add(self, number: int) -> None:
        free = [use for use in self._uses if use.agent is None]
        kind = self._draw(st.sampled_from(("same", "same", "root", "child", "side"))) if self._agents else "root"
        cause = Cause("turn_start")
        if kind == "side":
            agent = self._pick(self._agents)
            cause = Cause("side_call", self._draw(st.sampled_from((None, number - 1))))
        elif kind == "child" and free:
            agent, cause = self._child(free[self._pick(free)])
        elif kind == "root":
            agent = self._new(Agent(len(self._agents), f"root {len(self._agents)}"))
        else:
            agent = self._pick(self._agents)
            cause = Cause("tool_results")
        self._place(number, agent, cause)

    def _new(self, agent: Agent) -> int:
        self._agents.append(agent)
        self._calls[agent.number] = []
        return agent.number

    def _child(self, use: ToolUse) -> tuple[int, Cause]:
        parent = next(step.agent for step in self._steps if step.call.number == use.call_number)
        number = self._new(Agent(len(self._agents), use.call.name, parent, use.call_number, use.call.name, "data_flow"))
        started = ToolUse(use.call_number, use.index, use.call, use.result, use.result_call, number)
        self._uses[self._uses.index(use)] = started
        return number, Cause("subagent", use.call_number, (use.call.name,))

    def _place(self, number: int, agent: int, cause: Cause) -> None:
        call = self._call(number)
        self._take_results(number, agent)
        side = cause.kind == "side_call"
        self._steps.append(Step(call, agent, agent, None if side else 1 + number % 2, cause, 0))
        if not side:
            self._calls[agent].append(number)
        for index, tool in enumerate(call.tool_calls):
            self._uses.append(ToolUse(number, index, tool))

    def _take_results(self, number: int, agent: int) -> None:
        for place, use in enumerate(self._uses):
            mine = use.call_number in self._calls[agent] and use.result is None
            if mine and self._draw(st.booleans()):
                result = ToolResult(use.call.id, None, f"result of {use.call.name}")
                self._uses[place] = ToolUse(use.call_number, use.index, use.call, result, number, use.agent)

    def _call(self, number: int) -> ModelCall:
        draw = self._draw
        said = draw(st.sampled_from(("refund the order", "产品评审会", "", "a\x1b[31mb", "x" * 700)))
        request = CallRequest(
            "m", (Message("user", (Text(said),), (".content",)),), (_SPEC,), segments=((0, "messages"),)
        )
        if draw(st.integers(0, 9)) == 0:
            return ModelCall(number, number, "openai.chat", request, None, number, None, draw(st.sampled_from(ENDS)))
        asked = tuple(ToolCall(f"t{number}.{i}", draw(st.sampled_from(TOOLS)), '{"q": 1}') for i in range(draw(_SOME)))
        blocks: tuple[Block, ...] = (Text(f"answer {number}"), *asked)
        tokens = st.none() | st.integers(0, 9000)
        usage = draw(st.none() | st.builds(Usage, tokens, tokens, st.none(), tokens, st.none()))
        response = CallResponse(
            200, "m", f"r{number}", (Message("assistant", blocks),), draw(st.sampled_from(FINISHES)), usage=usage
        )
        return ModelCall(number, number, "openai.chat", request, response, number, number + 1, Ended.COMPLETE)


_SOME = st.integers(0, 3)
_SPEC = ToolSpec("look", "looks", {"type": "object"}, "function", {"name": "look"})
ENDS = (Ended.UPSTREAM_UNREACHABLE, Ended.TIMEOUT, None)
