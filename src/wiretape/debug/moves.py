"""The moves, forward and back: pure functions from one index of the timeline to another.

`step` and `next` move by calls and land after the call's answer. `step` goes to whatever call comes next, subagents and
side calls included; `next` skips those. `stepi` moves by stops. `finish` goes to where the caller of this agent
continues. Each move has a reverse. A move past the end of the tape lands on its end, or on its start.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wiretape.debug.timeline import Activation, Timeline
from wiretape.errors import UsageError


def stepi(timeline: Timeline, at: int) -> int:
    return min(at + 1, timeline.end)


def reverse_stepi(timeline: Timeline, at: int) -> int:
    return max(at - 1, 0)


def step(timeline: Timeline, at: int) -> int:
    """To the next call's answer; from a tool that starts a subagent, to the subagent's first answer."""
    inside = timeline.started_at(timeline.stops[at])
    if inside is not None:
        return timeline.answer(inside.calls[0])
    found = timeline.next_answer(at)
    return found if found is not None else timeline.end


def reverse_step(timeline: Timeline, at: int) -> int:
    found = timeline.last_answer(at)
    return found if found is not None else 0


def step_over(timeline: Timeline, at: int) -> int:
    """`next`: to the next call of this agent, or after its last call to the next call of its caller."""
    for calls in _outwards(timeline, at):
        found = timeline.next_answer(at, calls)
        if found is not None:
            return found
    return timeline.end


def reverse_step_over(timeline: Timeline, at: int) -> int:
    """To the previous call of this agent, or before its first call to the call that started it."""
    for calls in _outwards(timeline, at):
        found = timeline.last_answer(at, calls)
        if found is not None:
            return found
    return 0


def _outwards(timeline: Timeline, at: int) -> Sequence[Sequence[int]]:
    """The calls of this activation, of its caller, and so on up to all calls of root agents."""
    number = timeline.stops[at].call
    frames = timeline.frames(number) if number is not None else []
    return [*(frame.activation.calls for frame in frames if frame.activation.starter is not None), timeline.root_calls]


def step_out(timeline: Timeline, at: int, frame: int = 0) -> int:
    """`finish`: to the request that carries this agent's result to its caller.

    `frame`: the number of the frame to finish. A root agent finishes at the last answer of its turn.
    """
    activation, number = _frame(timeline, at, frame, "finish")
    if activation.starter is None:
        return _turn_end(timeline, at, number)
    use, last = timeline.started_by(activation), timeline.answer(activation.calls[-1])
    if use is not None and use.result_call is not None and timeline.has(use.result_call):
        place = timeline.request(use.result_call)
        if place > max(at, last):
            return place
    caller = timeline.activation(activation.starter).calls
    after = timeline.next_answer(max(at, last), caller)
    return after - 1 if after is not None else timeline.end  # the request is the stop before the answer


def reverse_step_out(timeline: Timeline, at: int, frame: int = 0) -> int:
    """To the tool call (or call) that started this agent; for a root agent, to the start of its turn."""
    activation, number = _frame(timeline, at, frame, "reverse-finish")
    if activation.starter is None:
        return _turn_start(timeline, at, number)
    use = timeline.started_by(activation)
    place = next((p for p, s in enumerate(timeline.stops) if use is not None and timeline.use(s) is use), None)
    return place if place is not None else timeline.answer(activation.starter)


def _frame(timeline: Timeline, at: int, frame: int, command: str) -> tuple[Activation, int]:
    number = timeline.stops[at].call
    if number is None:
        way = "step goes to the first call" if timeline.stops[at].phase == "start" else "reverse-step goes back"
        raise UsageError(
            f"{command} needs an agent at work, and this is the {timeline.stops[at].phase} of the tape: {way}"
        )
    found = timeline.frames(number)[frame]
    return found.activation, found.call


def _turn_calls(timeline: Timeline, number: int, command: str) -> tuple[int, list[int]]:
    turn = timeline.step(number).turn
    if turn is None:
        raise UsageError(f"{command} needs a turn, and call {number} is in none: use goto or next")
    steps = next(t.steps for t in timeline.run.turns if t.number == turn)
    return turn, [step.call.number for step in steps]


def _turn_end(timeline: Timeline, at: int, number: int) -> int:
    turn, calls = _turn_calls(timeline, number, "finish")
    roots = [n for n in calls if timeline.activation(n).starter is None] or calls
    place = timeline.answer(roots[-1])
    if place <= at:
        raise UsageError(f"the root agent has no caller, and turn {turn} ends here: use next or continue")
    return place


def _turn_start(timeline: Timeline, at: int, number: int) -> int:
    turn, calls = _turn_calls(timeline, number, "reverse-finish")
    place = timeline.request(calls[0])
    if place >= at:
        raise UsageError(f"the root agent has no caller, and turn {turn} starts here: use reverse-next")
    return place


def run_forward(timeline: Timeline, at: int, hits: Callable[[int], bool]) -> int:
    """`continue`: to the next stop that hits a breakpoint, or to the end."""
    return next((place for place in range(at + 1, timeline.end) if hits(place)), timeline.end)


def run_back(timeline: Timeline, at: int, hits: Callable[[int], bool]) -> int:
    return next((place for place in range(at - 1, 0, -1) if hits(place)), 0)
