"""Resolve the targets of faults to recorded calls. A fault without a possible target is an error."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

from wiretape.errors import UsageError
from wiretape.matching.faults.apply import AtAgent, AtCall, AtTool, Everywhere, Fault, FaultPlan, is_event
from wiretape.matching.recorded import RecordedExchange, SocketCall
from wiretape.matching.values import Reference
from wiretape.model.faults import Cut, Reset, Stall
from wiretape.model.http import StreamBody
from wiretape.model.run import Run, Step
from wiretape.model.wording import listed

_MOST_NAMED = 12


@dataclass(frozen=True, slots=True)
class _TargetCall:
    """A recorded call that a fault may target. `name`: its key in runs. `call`: set for a WebSocket's call."""

    key: Hashable
    name: tuple[int, int]
    reference: Reference
    recorded: RecordedExchange
    call: SocketCall | None = None


def resolve_targets(
    faults: Sequence[Fault],
    recorded: Sequence[RecordedExchange],
    sockets: Sequence[RecordedExchange],
    tapes: str,
    runs: Callable[[], Sequence[Run]],
) -> FaultPlan:
    """The plan of the faults. `runs`: called only if a fault names a tool or an agent. Raises UsageError."""
    aimed: dict[Hashable, list[Fault]] = {}
    calls = [
        _TargetCall(one.order, (one.tape, one.exchange.number), one.reference, one)
        for one in recorded
        if one.reference.call is not None
    ]
    calls += [call for one in sockets for call in _socket_aims(one)]
    calls.sort(key=lambda one: (one.recorded.tape, one.reference.call or 0))
    for fault in faults:
        hit = _hit(fault, calls, tapes, runs)
        if not isinstance(fault.target, AtCall):
            hit = _meant(fault, hit, tapes)
        for one in hit:
            _check(fault, one, tapes)
            aimed.setdefault(handshake_key(one.recorded) if fault.handshake else one.key, []).append(fault)
    return FaultPlan(aimed)


def call_key(recorded: RecordedExchange, call: SocketCall) -> Hashable:
    """The key of a WebSocket's call in a plan."""
    return (recorded.order, call.number)


def handshake_key(recorded: RecordedExchange) -> Hashable:
    return (recorded.order, 0)  # calls count from 1


def _socket_aims(recorded: RecordedExchange) -> Iterator[_TargetCall]:
    for call in recorded.calls:
        name = (recorded.tape, -call.number)  # not the exchange's number: it may have many calls
        yield _TargetCall(call_key(recorded, call), name, replace(recorded.reference, call=call.number), recorded, call)


def _hit(
    fault: Fault, calls: Sequence[_TargetCall], tapes: str, runs: Callable[[], Sequence[Run]]
) -> list[_TargetCall]:
    match fault.target:
        case Everywhere():
            return list(calls)
        case AtCall(number=number):
            hit = [one for one in calls if one.reference.call == number]
            there = [str(one.reference.call) for one in calls]
            noun = f"call {number}"
        case AtTool(name=name):
            hit, there = _named(name, calls, runs(), _tools)
            noun = f"call that requests a tool {name!r}"
        case AtAgent(name=name):
            hit, there = _named(name, calls, runs(), _agents)
            noun = f"call of an agent {name!r}"
    if not hit:
        shown = listed(there, _MOST_NAMED) or "none"
        raise UsageError(f"{fault.named}: {tapes} has no {noun}\n  there are: {shown}")
    return hit


def _named(
    name: str, calls: Sequence[_TargetCall], runs: Sequence[Run], names: Callable[[Run, Step], list[str]]
) -> tuple[list[_TargetCall], list[str]]:
    """The calls with this name, and all names."""
    steps: dict[tuple[int, int], list[str]] = {}
    for at, run in enumerate(runs):
        for step in run.steps:
            steps[at, step.call.exchange] = steps[at, -step.call.number] = names(run, step)
    hit = [one for one in calls if name in steps.get(one.name, ())]
    return hit, list(dict.fromkeys(one for every in steps.values() for one in every))


def _tools(run: Run, step: Step) -> list[str]:
    return [call.name for call in step.call.tool_calls]


def _agents(run: Run, step: Step) -> list[str]:
    return [run.agents[step.agent].name]


def _meant(fault: Fault, hit: Sequence[_TargetCall], tapes: str) -> list[_TargetCall]:
    """Of the calls that match a target, those into which the fault can be injected."""
    meant = [one for one in hit if not _why_not(fault, one)]
    if hit and not meant:
        raise UsageError(f"{fault.named}: no such call on {tapes}: {_why_not(fault, hit[0])}")
    return meant


def _why_not(fault: Fault, one: _TargetCall) -> str:
    """Why a fault cannot be injected into a call; empty if it can."""
    named = f"call {one.reference.call}"
    if fault.handshake and one.call is None:
        return f"{named} came over HTTP, which has no handshake\n  omit :handshake"
    if one.call is None:
        return ""
    if fault.handshake and one.call.number != min(call.number for call in one.recorded.calls):
        return f"{named} was not the first call of its WebSocket\n  omit :handshake"
    if one.recorded.exchange.messages[one.call.messages[0]].sender == "server":
        return f"{named} was begun by the server, over a WebSocket: no client retries it"
    return ""


def _check(fault: Fault, one: _TargetCall, tapes: str) -> None:
    """Raise UsageError if the fault cannot be injected into the call: a cut after its last event, say."""
    why = _why_not(fault, one)
    if why:
        raise UsageError(f"{fault.named}: {why}")
    if not isinstance(fault.effect, Cut | Reset | Stall) or not isinstance(fault.target, AtCall):
        return
    events, what = _events(one)
    goes_on = isinstance(fault.effect, Stall) and fault.effect.ms is not None and one.call is not None
    if (fault.effect.event or 0) > (max(0, events - 1) if goes_on else events):  # nothing follows the last message
        raise UsageError(f"{fault.named}: the answer of {one.reference} on {tapes} is {what}")


def _events(one: _TargetCall) -> tuple[int, str]:
    """The number of events of an answer, and its description."""
    if one.call is not None:
        messages = one.recorded.exchange.messages
        events = sum(messages[at].sender == "server" for at in one.call.messages)
        return events, f"{events} messages of a WebSocket"
    body = one.recorded.exchange.response.body if one.recorded.exchange.response is not None else None
    if isinstance(body, StreamBody):
        events = sum(map(is_event, body.frames))
        return events, f"a stream of {events} events"
    return 1, "not a stream (event=1 is half of it)"
