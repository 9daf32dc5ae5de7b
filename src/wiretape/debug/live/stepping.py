"""Moves forward where the run is still happening: through what is known, and then on with the program.

Looking back is as on a tape. Where a forward move would leave what has happened, the program goes on, and the reply
says that one has to wait: for the next call that is held, or for the program's end.
"""

from __future__ import annotations

from wiretape.debug.live.pending_calls import AT_NEXT_CALL, Action, Continue, PendingCall, Stepping
from wiretape.debug.live.program import LiveProgram
from wiretape.debug.replies import Arrival, CommandReply, Part, Sentence
from wiretape.debug.state import DebuggerState
from wiretape.debug.timeline import Stop
from wiretape.errors import UsageError
from wiretape.model.wording import plural

# What each way is called where it is offered, and what it does.
_OFFERS: dict[Action, str] = {
    "serve": "serve (give the recorded answer)",
    "accept": "accept (give the nearest recorded answer)",
    "live": "live (ask the real model)",
    "answer": "edit answer, say TEXT",
    "request": "edit request",
    "inject": "inject 429",
    "delay": "delay 5",
    "drop": "drop",
}


def continue_live(debugger: DebuggerState, live: LiveProgram, goal: int, kind: str) -> CommandReply | None:
    """A forward move to `goal`. None: what lies there has happened, and the move is as on a tape."""
    live.refresh()
    line = debugger.timeline
    if any(one.stop == debugger.here for one in live.pending):
        return resume(debugger, live, kind)
    waiting = sorted(line.place(one.stop) for one in live.pending)
    ahead = next((place for place in waiting if place > debugger.at), None)
    if ahead is not None and goal >= ahead:
        return _arrived(debugger, live, ahead)
    stop = line.stops[goal]
    if stop.phase != "end" and not live.is_open(stop.call):
        return None
    return resume(debugger, live, kind)


def resume(debugger: DebuggerState, live: LiveProgram, kind: str) -> CommandReply:
    """Let the program go on until something holds it."""
    if live.exit_code is not None:
        return _at_end(debugger, live)
    here = [one for one in live.pending if one.number == debugger.here.call and one.shown]
    if live.pending and not here:
        return _arrived(debugger, live, debugger.timeline.place(live.pending[0].stop))
    live.stepping = _stepping(debugger, kind)
    for one in here:
        live.release(one, Continue(one.answer if one.edited else None))
    live.start_program()
    return CommandReply(waits=True)


def _stepping(debugger: DebuggerState, kind: str) -> Stepping | None:
    """What the program is to be held at, apart from breakpoints."""
    if kind == "stepi":
        return Stepping(lambda stop: True, answers=True)
    if kind == "step":
        return AT_NEXT_CALL
    if kind not in ("next", "finish"):
        return None
    number = debugger.here.call
    frames = debugger.timeline.frames(number) if number is not None else []
    agents = {frame.activation.agent for frame in (frames[1:] if kind == "finish" else frames)}
    if kind == "finish" and not agents:
        raise UsageError("no agent called this one: continue goes on to the next breakpoint, step to the next call")

    def of_agents(stop: Stop) -> bool:
        if stop.phase != "request" or stop.call is None:
            return False
        going = debugger.timeline.activation(stop.call)
        return not going.side and (going.agent in agents if agents else going.starter is None)

    return Stepping(of_agents)


def reply_after_wait(debugger: DebuggerState, live: LiveProgram) -> CommandReply | None:
    """What to show after waiting: the call that is held now, or how the program ended. None: neither is so."""
    live.refresh()
    if live.pending:
        return _arrived(debugger, live, debugger.timeline.place(live.pending[0].stop))
    return _at_end(debugger, live) if live.exit_code is not None else None


def _arrived(debugger: DebuggerState, live: LiveProgram, place: int) -> CommandReply:
    stop = debugger.timeline.stops[place]
    held = next((one for one in live.pending if one.stop == stop), None)
    arrived = debugger.arrive(place)
    return CommandReply(parts=(arrived, *(pending_call_parts(live, live.show(held)) if held is not None else ())))


def _at_end(debugger: DebuggerState, live: LiveProgram) -> CommandReply:
    calls = plural(len(debugger.timeline.calls), "call")
    said = Sentence(
        f"the program has ended with exit code {live.exit_code} after {calls}; quit leaves, reverse-step goes back"
    )
    if debugger.here.phase == "end":
        return CommandReply(parts=(said,))
    return CommandReply(parts=(debugger.arrive(debugger.timeline.end), said))


def pending_call_parts(live: LiveProgram, held: PendingCall) -> list[Part]:
    """Why a call waits, and what can be done with it."""
    where = "with its answer, which the program has not got yet" if held.answered else "before it is sent"
    parts: list[Part] = [Sentence(f"call {held.number} is held {where}", "good")]
    if held.reason and not held.miss:
        parts.append(Sentence(held.reason))
    if held.miss:
        parts.append(Sentence(held.miss, "bad"))
    if held.edited:
        parts.append(Sentence("its answer was edited"))
    others = [one.number for one in live.pending if one is not held]
    if others:
        parts.append(Sentence(f"also held: {', '.join(f'call {number}' for number in others)} (held lists them)"))
    actions = [text for way, text in _OFFERS.items() if way in held.actions and not (held.answered and way == "serve")]
    go = "continue and step give the program its answer" if held.answered else "continue and step let it go"
    if held.miss:
        go = "continue gives the program the error of a miss; stop ends it"
    parts.append(Sentence(f"{go}; or: {' · '.join(actions)}", "dim"))
    if held.patience is not None:
        parts.append(Sentence(f"its client says that it waits {held.patience:g} s", "dim"))
    return parts


def arrived_at(reply: CommandReply) -> Arrival | None:
    return next((part for part in reply.parts if isinstance(part, Arrival)), None)
