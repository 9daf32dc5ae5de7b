"""Forward moves in a live program.

Inside the calls that have happened, a move works as on a tape. A move beyond them releases the program; the reply then
has `waits` set, until the next call is held or the program ends.
"""

from __future__ import annotations

from wiretape.debug.live.pending_calls import AT_NEXT_CALL, Action, PendingCall, Stepping
from wiretape.debug.live.program import LiveProgram
from wiretape.debug.replies import CommandReply, Part, Sentence, reply
from wiretape.debug.state import DebuggerState
from wiretape.debug.timeline import Stop
from wiretape.errors import UsageError
from wiretape.model.wording import numbered, plural

# How each action is offered to the user.
_OFFERS: dict[Action, str] = {
    "serve": "serve (send the recorded answer)",
    "accept": "accept (send the nearest recorded answer)",
    "live": "live (send it to the real model)",
    "answer": "edit answer, say TEXT",
    "request": "edit request",
    "inject": "inject 429",
    "delay": "delay 5",
    "drop": "drop",
}


def continue_live(debugger: DebuggerState, live: LiveProgram, goal: int, kind: str) -> CommandReply | None:
    """Carry out a forward move to the stop `goal`; None if it has happened already and the move is as on a tape."""
    live.refresh()
    timeline = debugger.timeline
    if any(call.stop == debugger.here for call in live.pending):
        return resume(debugger, live, kind)
    waiting = sorted(timeline.place(call.stop) for call in live.pending)
    ahead = next((place for place in waiting if place > debugger.at), None)
    if ahead is not None and goal >= ahead:
        return _arrived(debugger, live, ahead)
    stop = timeline.stops[goal]
    if stop.phase != "end" and not live.is_open(stop.call):
        return None
    return resume(debugger, live, kind)


def resume(debugger: DebuggerState, live: LiveProgram, kind: str) -> CommandReply:
    """Release the held call of the current stop, and start the program if it does not run yet."""
    if live.exit_code is not None:
        return _at_end(debugger, live)
    here = [call for call in live.pending if call.number == debugger.here.call and call.shown]
    if live.pending and not here:
        return _arrived(debugger, live, debugger.timeline.place(live.pending[0].stop))
    live.stepping = _stepping(debugger, kind)
    for call in here:
        live.release(call, call.release)
    live.start_program()
    return CommandReply(waits=True)


def _stepping(debugger: DebuggerState, kind: str) -> Stepping | None:
    """The stops at which a move holds the program, apart from breakpoints."""
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
        raise UsageError("no agent called this one: use continue, or step to the next call")

    def of_agents(stop: Stop) -> bool:
        if stop.phase != "request" or stop.call is None:
            return False
        activation = debugger.timeline.activation(stop.call)
        return not activation.side and (activation.agent in agents if agents else activation.starter is None)

    return Stepping(of_agents)


def reply_after_wait(debugger: DebuggerState, live: LiveProgram) -> CommandReply | None:
    """The reply for a held call or for the end of the program; None while the program runs."""
    live.refresh()
    if live.pending:
        return _arrived(debugger, live, debugger.timeline.place(live.pending[0].stop))
    return _at_end(debugger, live) if live.exit_code is not None else None


def _arrived(debugger: DebuggerState, live: LiveProgram, place: int) -> CommandReply:
    stop = debugger.timeline.stops[place]
    pending = next((call for call in live.pending if call.stop == stop), None)
    arrival = debugger.arrive(place)
    return reply(arrival, *(_held_parts(live, live.show(pending)) if pending is not None else ()))


def _at_end(debugger: DebuggerState, live: LiveProgram) -> CommandReply:
    calls = plural(len(debugger.timeline.calls), "call")
    ended = Sentence(f"the program ended with exit code {live.exit_code} after {calls}; use quit or reverse-step")
    if debugger.here.phase == "end":
        return reply(ended)
    return reply(debugger.arrive(debugger.timeline.end), ended)


def _held_parts(live: LiveProgram, pending: PendingCall) -> list[Part]:
    """Why a call is held, and what the user can do with it."""
    where = "with its answer, before the program gets it" if pending.answered else "before it is sent"
    parts: list[Part] = [Sentence(f"call {pending.number} is held {where}", "good")]
    if pending.reason and not pending.miss:
        parts.append(Sentence(pending.reason))
    if pending.miss:
        parts.append(Sentence(pending.miss, "bad"))
    if pending.edited:
        parts.append(Sentence("its answer was edited"))
    others = [call.number for call in live.pending if call is not pending]
    if others:
        parts.append(Sentence(f"also held: {numbered('call', others)} (held lists them)"))
    offers = [
        text
        for action, text in _OFFERS.items()
        if action in pending.actions and not (pending.answered and action == "serve")
    ]
    go = "continue and step give the program its answer" if pending.answered else "continue and step release it"
    if pending.miss:
        go = "continue sends the program the error of a miss; stop ends it"
    parts.append(Sentence(f"{go}; or: {' · '.join(offers)}", "dim"))
    if pending.client_timeout is not None:
        parts.append(Sentence(f"its client times out after {pending.client_timeout:g} s", "dim"))
    return parts
