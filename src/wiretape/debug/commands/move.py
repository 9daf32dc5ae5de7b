"""The commands that move through a run."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from wiretape.debug import moves
from wiretape.debug.commands.table import Command
from wiretape.debug.live.stepping import onwards, set_off
from wiretape.debug.replies import Arrived, Part, Reply, Said
from wiretape.debug.timeline import Stop, Timeline
from wiretape.errors import UsageError

if TYPE_CHECKING:
    from wiretape.debug.session import Debugger, Move

_ENDS = {
    "end": "the tape has ended",
    "start": "this is the start of the tape: nothing has been sent yet",
}


def times(text: str, command: str) -> int:
    """How often to do it: 1 unless said."""
    if not text:
        return 1
    if not (text.isascii() and text.isdecimal()) or not 0 < int(text[:9]) < 10**8 or len(text) > 8:
        raise UsageError(f"{command} takes how many times to do it, such as {command} 3; not {text!r}")
    return int(text)


def _going(name: str, move: Move) -> Callable[[Debugger, str], Reply]:
    """A command that moves N times, and stops earlier at a breakpoint or at the tape's end."""

    def run(debugger: Debugger, rest: str) -> Reply:
        arrived: Arrived | None = None
        forward = not name.startswith("reverse")
        for _ in range(times(rest, name)):
            place = debugger.travel(move)
            if debugger.live is not None and forward:
                further = onwards(debugger, debugger.live, place, name)
                if further is not None:
                    return further
            if place == debugger.at:
                break
            arrived = debugger.arrive(place)
            if arrived.hits:
                break
        return _arrived(debugger, arrived, name)

    return run


def _arrived(debugger: Debugger, arrived: Arrived | None, name: str) -> Reply:
    if arrived is None:
        return Reply(parts=(Said(_ends_here(debugger, name), "dim"),))
    return Reply(parts=(arrived, *_remarks(debugger, arrived)))


def _remarks(debugger: Debugger, arrived: Arrived) -> list[Part]:
    """What to say at the tape's ends."""
    if arrived.place not in _ENDS:
        return []
    text = _ENDS[arrived.place]
    back = "reverse-continue and reverse-step go back" if arrived.place == "end" else "step and continue go on"
    return [Said(f"{text}; {back}", "dim")]


def _ends_here(debugger: Debugger, name: str) -> str:
    if debugger.here.phase == "end":
        return "the tape has ended, there is nothing further; reverse-step (rs) goes back"
    if debugger.here.phase == "start":
        return "this is the start of the tape, there is nothing before it; step (s) goes on"
    return f"{name} leads nowhere from here"


def _continue(debugger: Debugger, rest: str) -> Reply:
    return _run(debugger, rest, "continue", moves.run_on)


def _reverse_continue(debugger: Debugger, rest: str) -> Reply:
    return _run(debugger, rest, "reverse-continue", moves.run_back)


def _run(debugger: Debugger, rest: str, name: str, way: Callable[[Timeline, int, Callable[[int], bool]], int]) -> Reply:
    arrived: Arrived | None = None
    for _ in range(times(rest, name)):
        place = way(debugger.line, debugger.at, debugger.stops_here)
        if debugger.live is not None and way is moves.run_on:
            further = onwards(debugger, debugger.live, place, name)
            if further is not None:
                return further
        if place == debugger.at:
            break
        arrived = debugger.arrive(place)
        if not arrived.hits:
            break
    reply = _arrived(debugger, arrived, name)
    if arrived is not None and not arrived.hits:
        said = "no breakpoint is set" if not debugger.breakpoints.points else "no breakpoint was hit on the way"
        return Reply(parts=(Said(said, "dim"), *reply.parts))
    return reply


def _restart(debugger: Debugger, rest: str) -> Reply:
    if rest:
        raise UsageError("run takes no argument: it goes to the start and continues to the first breakpoint")
    if debugger.live is None or not debugger.live.running:
        debugger.arrive(0)
    return _continue(debugger, "")


def _finish(debugger: Debugger, rest: str) -> Reply:
    frame = debugger.frame
    number = debugger.here.call
    if debugger.live is not None and any(one.stop == debugger.here for one in debugger.live.held):
        return set_off(debugger, debugger.live, "finish")
    going = debugger.line.frames(number)[frame].activation if number is not None else None
    goal = moves.out(debugger.line, debugger.at, frame)
    place = debugger.travel(lambda line, at: goal)
    use = debugger.line.started_by(going) if going is not None else None
    returned = None
    if place == goal and use is not None and use.result is not None:
        returned = (use.call.name, use.result.text)
    return _arrived(debugger, debugger.arrive(place, returned), "finish")


def _reverse_finish(debugger: Debugger, rest: str) -> Reply:
    goal = moves.reverse_out(debugger.line, debugger.at, debugger.frame)
    place = debugger.travel(lambda line, at: goal)
    return _arrived(debugger, debugger.arrive(place), "reverse-finish")


# -- goto --------------------------------------------------------------------------------------------------------------

_CALL = re.compile(r"(?:call\s+)?([xX]?)(\d{1,9})(?:\.(\d{1,4})|\s+(request|answer|tool\s*(\d{0,4})))?")
_TURN = re.compile(r"(?:turn|t)\s*(\d{1,9})")


def _goto(debugger: Debugger, rest: str) -> Reply:
    if not rest:
        raise UsageError("goto where? A call (goto 3, goto 3 request, goto 3.1 for its first tool), an exchange "
                         "(goto x3), a turn (goto turn 2), start or end")  # fmt: skip
    return Reply(parts=(debugger.visit(place_named(debugger.line, rest)),))


def place_named(line: Timeline, text: str) -> Stop:
    """The stop that a person names. Raises UsageError."""
    word = text.strip().lower()
    if word in ("start", "end"):
        return line.stops[0] if word == "start" else line.stops[-1]
    if match := _TURN.fullmatch(word):
        return _turn(line, int(match[1]))
    match = _CALL.fullmatch(word)
    if match is None:
        raise UsageError(f"{text!r} is no place: say 3, x3, 3 request, 3.1, turn 2, start or end")
    number = int(match[2]) if not match[1] else _of_exchange(line, int(match[2]))
    line.step(number)
    if match[3] or (match[4] or "").startswith("tool"):
        return _tool(line, number, int(match[3] or match[5] or 1))
    return Stop("request" if match[4] == "request" else "answer", number)


def _turn(line: Timeline, number: int) -> Stop:
    for turn in line.run.turns:
        if turn.number == number:
            return Stop("request", turn.steps[0].call.number)
    raise UsageError(f"there is no turn {number}: the tape has {len(line.run.turns)}")


def _of_exchange(line: Timeline, exchange: int) -> int:
    for step in line.run.steps:
        if step.call.exchange == exchange:
            return step.call.number
    raise UsageError(f"exchange x{exchange} is no model call of this tape")


def _tool(line: Timeline, call: int, which: int) -> Stop:
    uses = line.uses(call)
    if not 1 <= which <= len(uses):
        has = f"it asks for {len(uses)}: " + ", ".join(use.call.name for use in uses) if uses else "it asks for none"
        raise UsageError(f"call {call} has no tool call {which}; {has}")
    return Stop("tool", call, uses[which - 1].index)


COMMANDS = (
    Command(
        "step", "moving", "go to the next call, into subagents", _going("step", moves.step), ("s",), "[N]",
        "Lands after the call's answer. From a tool that starts a subagent, it goes to that one's first call. "
        "Side calls are visited, too. A breakpoint on the way stops it.",
        ("step", "s 3"),
    ),
    Command(
        "next", "moving", "go to this agent's next call, over subagents", _going("next", moves.over), ("n",), "[N]",
        "Subagents and side calls are passed over; after an agent's last call it goes to its caller. "
        "A breakpoint on the way stops it.",
        ("next", "n 3"),
    ),
    Command(
        "stepi", "moving", "go to the next stop: request, answer or tool", _going("stepi", moves.stepi),
        ("si", "nexti", "ni"), "[N]",
        "Every call has a stop before its request, one after its answer, and one at each tool that it asks for.",
        ("si",),
    ),
    Command(
        "finish", "moving", "go to where the caller goes on with what this agent gave", _finish,
        ("fin", "return", "out"), "",
        "Lands before the request that carries the result, and shows it. In a root agent: to the answer that ends the "
        "turn. After up, it finishes the chosen frame.",
        ("finish",),
    ),
    Command(
        "continue", "moving", "go on to the next breakpoint, or to the end", _continue, ("c", "cont"), "[N]",
        "N: to the Nth breakpoint from here.",
        ("continue",),
    ),
    Command(
        "reverse-step", "moving", "go back to the call before, into subagents",
        _going("reverse-step", moves.reverse_step), ("rs",), "[N]", examples=("rs",),
    ),
    Command(
        "reverse-next", "moving", "go back to this agent's call before, over subagents",
        _going("reverse-next", moves.reverse_over), ("rn", "previous", "prev"), "[N]",
        "Before an agent's first call it goes to the call that set it going.", ("rn",),
    ),
    Command(
        "reverse-stepi", "moving", "go back to the stop before", _going("reverse-stepi", moves.reverse_stepi),
        ("rsi", "rni"), "[N]", examples=("rsi",),
    ),
    Command(
        "reverse-finish", "moving", "go back to the tool call that set this agent going", _reverse_finish,
        ("rfin", "rf", "call-site"), "", "In a root agent: to the start of the turn.", ("reverse-finish",),
    ),
    Command(
        "reverse-continue", "moving", "go back to the breakpoint before, or to the start", _reverse_continue, ("rc",),
        "[N]", examples=("rc",),
    ),
    Command(
        "goto", "moving", "go to a call, an exchange, a turn, the start or the end", _goto, ("g", "jump", "j"), "PLACE",
        "Breakpoints do not stop it.",
        ("goto 3", "goto 3 request", "goto 1.1", "goto x3", "goto turn 2", "goto end"), "place",
    ),
    Command(
        "run", "moving", "go to the start, and on to the first breakpoint", _restart, ("r",), "", examples=("run",),
    ),
)  # fmt: skip
