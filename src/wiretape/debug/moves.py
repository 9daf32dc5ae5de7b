"""The moves, forward and back: pure functions from a place on the timeline to another.

`step` and `next` go by calls (gdb's lines) and land after the call's answer: `step` to whatever call comes next, into
subagents and side calls; `next` over them. `stepi` goes by stops (gdb's instructions). `finish` goes to where the
agent that called this one goes on. Each is there reversed. A move that runs off the tape lands on its end or start.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wiretape.debug.timeline import Activation, Timeline
from wiretape.errors import UsageError


def stepi(line: Timeline, at: int) -> int:
    return min(at + 1, line.end)


def reverse_stepi(line: Timeline, at: int) -> int:
    return max(at - 1, 0)


def step(line: Timeline, at: int) -> int:
    """To the next call's answer; from a tool that starts a subagent, to that one's first."""
    inside = line.started_at(line.stops[at])
    if inside is not None:
        return line.answer(inside.calls[0])
    found = line.next_answer(at)
    return found if found is not None else line.end


def reverse_step(line: Timeline, at: int) -> int:
    found = line.last_answer(at)
    return found if found is not None else 0


def over(line: Timeline, at: int) -> int:
    """`next`: to the next call of this agent; where it has no more, of the one that called it."""
    for calls in _outwards(line, at):
        found = line.next_answer(at, calls)
        if found is not None:
            return found
    return line.end


def reverse_over(line: Timeline, at: int) -> int:
    """To the call before, by this agent; before its first, to the call that set it going."""
    for calls in _outwards(line, at):
        found = line.last_answer(at, calls)
        if found is not None:
            return found
    return 0


def _outwards(line: Timeline, at: int) -> Sequence[Sequence[int]]:
    """The calls of this agent's going, of its caller's, and so on to all calls of root agents."""
    number = line.stops[at].call
    frames = line.frames(number) if number is not None else []
    return [*(frame.activation.calls for frame in frames if frame.activation.starter is not None), line.root_calls]


def out(line: Timeline, at: int, frame: int = 0) -> int:
    """`finish`: to the request of the call that goes on with what this agent's work gave.

    `frame`: which frame is to end. A root agent's work is its turn: it ends after the turn's last answer.
    """
    going, number = _frame(line, at, frame, "finish")
    if going.starter is None:
        return _turn_end(line, at, number)
    use, last = line.started_by(going), line.answer(going.calls[-1])
    if use is not None and use.result_call is not None and line.has(use.result_call):
        place = line.request(use.result_call)
        if place > max(at, last):
            return place
    caller = line.activation(going.starter).calls
    after = line.next_answer(max(at, last), caller)
    return after - 1 if after is not None else line.end  # its request stands right before its answer


def reverse_out(line: Timeline, at: int, frame: int = 0) -> int:
    """To the tool call (or the call) that set this agent going; for a root agent, to the start of its turn."""
    going, number = _frame(line, at, frame, "reverse-finish")
    if going.starter is None:
        return _turn_start(line, at, number)
    use = line.started_by(going)
    place = next((p for p, s in enumerate(line.stops) if use is not None and line.use(s) is use), None)
    return place if place is not None else line.answer(going.starter)


def _frame(line: Timeline, at: int, frame: int, command: str) -> tuple[Activation, int]:
    number = line.stops[at].call
    if number is None:
        way = "step goes on to the first call" if line.stops[at].phase == "start" else "reverse-step goes back"
        raise UsageError(f"{command} needs an agent at work, and this is the {line.stops[at].phase} of the tape: {way}")
    found = line.frames(number)[frame]
    return found.activation, found.call


def _turn_calls(line: Timeline, number: int, command: str) -> tuple[int, list[int]]:
    turn = line.step(number).turn
    if turn is None:
        raise UsageError(f"call {number} belongs to no turn: {command} knows no end of it; use goto or next")
    steps = next(t.steps for t in line.run.turns if t.number == turn)
    return turn, [step.call.number for step in steps]


def _turn_end(line: Timeline, at: int, number: int) -> int:
    turn, calls = _turn_calls(line, number, "finish")
    roots = [n for n in calls if line.activation(n).starter is None] or calls
    place = line.answer(roots[-1])
    if place <= at:
        raise UsageError(f"the root agent has no caller, and turn {turn} ends here: next goes on, continue runs on")
    return place


def _turn_start(line: Timeline, at: int, number: int) -> int:
    turn, calls = _turn_calls(line, number, "reverse-finish")
    place = line.request(calls[0])
    if place >= at:
        raise UsageError(f"the root agent has no caller, and turn {turn} starts here: reverse-next goes further back")
    return place


def run_on(line: Timeline, at: int, hits: Callable[[int], bool]) -> int:
    """`continue`: to the next place where something is to stop, or to the end."""
    return next((place for place in range(at + 1, line.end) if hits(place)), line.end)


def run_back(line: Timeline, at: int, hits: Callable[[int], bool]) -> int:
    return next((place for place in range(at - 1, 0, -1) if hits(place)), 0)
