"""Aims faults at recorded calls. One that could never come, because no such call is on the tape, is refused at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wiretape.errors import UsageError
from wiretape.model.faults import Cut, Reset, Stall
from wiretape.model.http import StreamBody
from wiretape.model.loop import Run, Step
from wiretape.replay.faults import AtAgent, AtCall, AtTool, Everywhere, Fault, FaultPlan, is_event
from wiretape.replay.recorded import Recorded

_MOST_NAMED = 12


def aim(
    faults: Sequence[Fault], recorded: Sequence[Recorded], tapes: str, runs: Callable[[], Sequence[Run]]
) -> FaultPlan:
    """`runs`: one for each tape; asked for only where a fault names a tool or an agent."""
    aimed: dict[int, list[Fault]] = {}
    calls = [one for one in recorded if one.reference.call is not None]
    for fault in faults:
        hit = _hit(fault, calls, tapes, runs)
        _check_events(fault, hit, tapes)
        for one in hit:
            aimed.setdefault(one.order, []).append(fault)
    return FaultPlan(aimed)


def _hit(fault: Fault, calls: Sequence[Recorded], tapes: str, runs: Callable[[], Sequence[Run]]) -> list[Recorded]:
    match fault.target:
        case Everywhere():
            return list(calls)
        case AtCall(number=number):
            hit = [one for one in calls if one.reference.call == number]
            there = [str(one.reference.call) for one in calls]
            noun = f"call {number}"
        case AtTool(name=name):
            hit, there = _named(name, calls, runs(), _tools)
            noun = f"call that asks for a tool {name!r}"
        case AtAgent(name=name):
            hit, there = _named(name, calls, runs(), _agents)
            noun = f"call of an agent {name!r}"
    if not hit:
        shown = ", ".join([*there[:_MOST_NAMED], *(["…"] if len(there) > _MOST_NAMED else [])]) or "none"
        raise UsageError(
            f"--fault {fault.spec}: {tapes} has no {noun} whose answer came over HTTP\n  there are: {shown}"
        )
    return hit


def _named(
    name: str, calls: Sequence[Recorded], runs: Sequence[Run], names: Callable[[Run, Step], list[str]]
) -> tuple[list[Recorded], list[str]]:
    """The calls that have this name, and all names that there are."""
    steps = {(at, step.call.exchange): names(run, step) for at, run in enumerate(runs) for step in run.steps}
    hit = [one for one in calls if name in steps.get((one.tape, one.exchange.number), ())]
    return hit, list(dict.fromkeys(one for every in steps.values() for one in every))


def _tools(run: Run, step: Step) -> list[str]:
    return [call.name for call in step.call.tool_calls]


def _agents(run: Run, step: Step) -> list[str]:
    return [run.agents[step.agent].name]


def _check_events(fault: Fault, hit: Sequence[Recorded], tapes: str) -> None:
    """A cut behind the last event of a stream would be none."""
    if not isinstance(fault.effect, Cut | Reset | Stall) or not isinstance(fault.target, AtCall):
        return
    for one in hit:
        body = one.exchange.response.body if one.exchange.response is not None else None
        events = sum(map(is_event, body.frames)) if isinstance(body, StreamBody) else 1
        if (fault.effect.event or 0) > events:
            what = (
                f"a stream of {events} events" if isinstance(body, StreamBody) else "no stream (event=1 is half of it)"
            )
            raise UsageError(f"--fault {fault.spec}: the answer of {one.reference} on {tapes} is {what}")
