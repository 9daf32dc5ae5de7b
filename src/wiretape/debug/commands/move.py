"""The commands that move through a run, and searches."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial

from wiretape.debug import moves
from wiretape.debug.command import DebugCommand
from wiretape.debug.live.stepping import continue_live, resume
from wiretape.debug.replies import Arrival, CommandReply, Part, SearchMatch, Sentence, reply
from wiretape.debug.state import DebuggerState, Move
from wiretape.debug.timeline import Stop, Timeline
from wiretape.errors import UsageError
from wiretape.model.wording import plural

_ENDS = {
    "end": "this is the end of the tape; use reverse-step or reverse-continue",
    "start": "this is the start of the tape; use step or continue",
}


def times(text: str, command: str) -> int:
    """Parse how often to repeat a command; 1 by default. Raises UsageError."""
    if not text:
        return 1
    if not (text.isascii() and text.isdecimal()) or not 0 < int(text[:9]) < 10**8 or len(text) > 8:
        raise UsageError(f"{command} takes a number of repetitions, such as {command} 3; not {text!r}")
    return int(text)


def _repeated(name: str, move: Move) -> Callable[[DebuggerState, str], CommandReply]:
    """A command that moves N times, or until a breakpoint or the end of the tape."""

    def run(debugger: DebuggerState, rest: str) -> CommandReply:
        arrived: Arrival | None = None
        forward = not name.startswith("reverse")
        for _ in range(times(rest, name)):
            place = debugger.travel(move)
            if debugger.live is not None and forward:
                further = continue_live(debugger, debugger.live, place, name)
                if further is not None:
                    return further
            if place == debugger.at:
                break
            arrived = debugger.arrive(place)
            if arrived.hits:
                break
        return _arrived(debugger, arrived, name)

    return run


def _arrived(debugger: DebuggerState, arrived: Arrival | None, name: str) -> CommandReply:
    if arrived is None:
        return reply(Sentence(_ends_here(debugger, name), "dim"))
    return reply(arrived, *_at_an_end(debugger, arrived))


def _at_an_end(debugger: DebuggerState, arrived: Arrival) -> list[Part]:
    """A hint at the ends of the tape."""
    if arrived.place not in _ENDS:
        return []
    return [Sentence(_ENDS[arrived.place], "dim")]


def _ends_here(debugger: DebuggerState, name: str) -> str:
    if debugger.here.phase == "end":
        return "this is the end of the tape; use reverse-step (rs)"
    if debugger.here.phase == "start":
        return "this is the start of the tape; use step (s)"
    return f"{name} has no further stop here"


def _run(debugger: DebuggerState, rest: str, name: str) -> CommandReply:
    forward = name == "continue"
    move = moves.run_forward if forward else moves.run_back
    arrived: Arrival | None = None
    for _ in range(times(rest, name)):
        place = move(debugger.timeline, debugger.at, debugger.stops_here)
        if debugger.live is not None and forward:
            further = continue_live(debugger, debugger.live, place, name)
            if further is not None:
                return further
        if place == debugger.at:
            break
        arrived = debugger.arrive(place)
        if not arrived.hits:
            break
    parts = _arrived(debugger, arrived, name)
    if arrived is not None and not arrived.hits:
        said = "no breakpoint is set" if not debugger.breakpoints.points else "no breakpoint was hit on the way"
        return reply(Sentence(said, "dim"), *parts.parts)
    return parts


def _restart(debugger: DebuggerState, rest: str) -> CommandReply:
    if rest:
        raise UsageError("run takes no argument: it goes to the start and on to the first breakpoint")
    if debugger.live is None or not debugger.live.running:
        debugger.arrive(0)
    return _run(debugger, "", "continue")


def _finish(debugger: DebuggerState, rest: str) -> CommandReply:
    frame = debugger.frame
    number = debugger.here.call
    if debugger.live is not None and any(one.stop == debugger.here for one in debugger.live.pending):
        return resume(debugger, debugger.live, "finish")
    going = debugger.timeline.frames(number)[frame].activation if number is not None else None
    goal = moves.step_out(debugger.timeline, debugger.at, frame)
    place = debugger.travel(lambda line, at: goal)
    use = debugger.timeline.started_by(going) if going is not None else None
    returned = None
    if place == goal and use is not None and use.result is not None:
        returned = (use.call.name, use.result.text)
    return _arrived(debugger, debugger.arrive(place, returned), "finish")


def _reverse_finish(debugger: DebuggerState, rest: str) -> CommandReply:
    goal = moves.reverse_step_out(debugger.timeline, debugger.at, debugger.frame)
    place = debugger.travel(lambda line, at: goal)
    return _arrived(debugger, debugger.arrive(place), "reverse-finish")


# -- goto --------------------------------------------------------------------------------------------------------------

_CALL = re.compile(r"(?:call\s+)?([xX]?)(\d{1,9})(?:\.(\d{1,4})|\s+(request|answer|tool\s*(\d{0,4})))?")
_TURN = re.compile(r"(?:turn|t)\s*(\d{1,9})")


def _goto(debugger: DebuggerState, rest: str) -> CommandReply:
    if not rest:
        raise UsageError("goto where? A call (goto 3, goto 3 request, goto 3.1 for its first tool), an exchange "
                         "(goto x3), a turn (goto turn 2), start or end")  # fmt: skip
    return reply(debugger.visit(place_named(debugger.timeline, rest)))


def place_named(timeline: Timeline, text: str) -> Stop:
    """Parse the stop that a user names. Raises UsageError."""
    word = text.strip().lower()
    if word in ("start", "end"):
        return timeline.stops[0] if word == "start" else timeline.stops[-1]
    if match := _TURN.fullmatch(word):
        return _turn(timeline, int(match[1]))
    match = _CALL.fullmatch(word)
    if match is None:
        raise UsageError(f"cannot go to {text!r}: use 3, x3, 3 request, 3.1, turn 2, start or end")
    number = int(match[2]) if not match[1] else _of_exchange(timeline, int(match[2]))
    timeline.step(number)
    if match[3] or (match[4] or "").startswith("tool"):
        return _tool(timeline, number, int(match[3] or match[5] or 1))
    return Stop("request" if match[4] == "request" else "answer", number)


def _turn(timeline: Timeline, number: int) -> Stop:
    for turn in timeline.run.turns:
        if turn.number == number:
            return Stop("request", turn.steps[0].call.number)
    raise UsageError(f"the tape has no turn {number}; it has {plural(len(timeline.run.turns), 'turn')}")


def _of_exchange(timeline: Timeline, exchange: int) -> int:
    for step in timeline.run.steps:
        if step.call.exchange == exchange:
            return step.call.number
    raise UsageError(f"exchange x{exchange} of this tape is not a model call")


def _tool(timeline: Timeline, call: int, which: int) -> Stop:
    uses = timeline.uses(call)
    if not 1 <= which <= len(uses):
        has = f"it asks for {len(uses)}: " + ", ".join(use.call.name for use in uses) if uses else "it asks for none"
        raise UsageError(f"call {call} has no tool call {which}; {has}")
    return Stop("tool", call, uses[which - 1].index)


_AROUND = 60  # characters shown at either side of a match
_MOST = 3  # matches shown of one call


def _search(debugger: DebuggerState, rest: str, forward: bool) -> CommandReply:
    """Go to the next call whose text matches. Raises UsageError, with the matches in the other direction."""
    text = rest or debugger.sought
    if not text:
        raise UsageError("search for what? Such as: search refund, or search /regex/")
    pattern = _pattern(text)
    debugger.sought = text
    found = [number for number in debugger.timeline.calls if _matches(debugger, text, pattern, number)]
    places = [debugger.timeline.answer(number) for number in found]
    ahead = [place for place in places if (place > debugger.at if forward else place < debugger.at)]
    if not ahead:
        raise UsageError(_nothing(text, found, forward))
    place = ahead[0] if forward else ahead[-1]
    number = found[places.index(place)]
    arrived = debugger.arrive(place)
    excerpts = tuple(_excerpts(debugger.annotated.text(Stop("answer", number)), pattern))
    return reply(arrived, SearchMatch(text, excerpts, places.index(place) + 1, len(found)))


def _pattern(text: str) -> re.Pattern[str]:
    if len(text) > 2 and text[0] == text[-1] == "/":
        try:
            return re.compile(text[1:-1])
        except (re.error, OverflowError, RecursionError) as error:
            raise UsageError(f"{text} is not a regular expression: {error}") from None
    return re.compile(re.escape(text), re.IGNORECASE)


def _matches(debugger: DebuggerState, text: str, pattern: re.Pattern[str], number: int) -> bool:
    if pattern.flags & re.IGNORECASE and text.isascii():  # faster than a case-insensitive pattern
        return text.casefold() in debugger.annotated.folded(number)
    return pattern.search(debugger.annotated.text(Stop("answer", number))) is not None


def _nothing(text: str, found: list[int], forward: bool) -> str:
    where = "after" if forward else "before"
    if not found:
        return f"no call contains {text!r} in its new messages or its answer"
    back = "reverse-search" if forward else "search"
    return f"no call {where} this one contains {text!r}; {back} finds {plural(len(found), 'call')}"


def _excerpts(text: str, pattern: re.Pattern[str]) -> Iterator[str]:
    for count, match in enumerate(pattern.finditer(text)):
        if count == _MOST:
            return
        start, end = max(0, match.start() - _AROUND), min(len(text), match.end() + _AROUND)
        before, after = "…" if start else "", "…" if end < len(text) else ""
        yield before + " ".join(text[start:end].split()) + after


COMMANDS = (
    DebugCommand(
        "step", "moving", "go to the next call, into subagents", _repeated("step", moves.step), ("s",), "[N]",
        "Lands after the call's answer. From a tool that starts a subagent, it goes to the subagent's first call. "
        "It also visits side calls. A breakpoint on the way stops it.",
        ("step", "s 3"),
    ),
    DebugCommand(
        "next", "moving", "go to this agent's next call, over subagents", _repeated("next", moves.step_over),
        ("n",), "[N]",
        "Skips subagents and side calls; after an agent's last call it goes to its caller. "
        "A breakpoint on the way stops it.",
        ("next", "n 3"),
    ),
    DebugCommand(
        "stepi", "moving", "go to the next stop: request, answer or tool", _repeated("stepi", moves.stepi),
        ("si", "nexti", "ni"), "[N]",
        "Every call has a stop before its request, one after its answer, and one at each tool that it calls.",
        ("si",),
    ),
    DebugCommand(
        "finish", "moving", "go to where the caller gets this agent's result", _finish,
        ("fin", "return", "out"), "",
        "Lands before the request that carries the result, and shows it. In a root agent: to the answer that ends the "
        "turn. After up, it finishes the chosen frame.",
        ("finish",),
    ),
    DebugCommand(
        "continue", "moving", "go to the next breakpoint, or to the end",
        partial(_run, name="continue"), ("c", "cont"), "[N]",
        "N: to the Nth breakpoint from here.",
        ("continue",),
    ),
    DebugCommand(
        "reverse-step", "moving", "go back to the previous call, into subagents",
        _repeated("reverse-step", moves.reverse_step), ("rs",), "[N]", examples=("rs",),
    ),
    DebugCommand(
        "reverse-next", "moving", "go back to this agent's previous call, over subagents",
        _repeated("reverse-next", moves.reverse_step_over), ("rn", "previous", "prev"), "[N]",
        "Before an agent's first call it goes to the call that started the agent.", ("rn",),
    ),
    DebugCommand(
        "reverse-stepi", "moving", "go back to the previous stop", _repeated("reverse-stepi", moves.reverse_stepi),
        ("rsi", "rni"), "[N]", examples=("rsi",),
    ),
    DebugCommand(
        "reverse-finish", "moving", "go back to the tool call that started this agent", _reverse_finish,
        ("rfin", "rf", "call-site"), "", "In a root agent: to the start of the turn.", ("reverse-finish",),
    ),
    DebugCommand(
        "reverse-continue", "moving", "go back to the previous breakpoint, or to the start",
        partial(_run, name="reverse-continue"), ("rc",),
        "[N]", examples=("rc",),
    ),
    DebugCommand(
        "goto", "moving", "go to a call, an exchange, a turn, the start or the end", _goto, ("g", "jump", "j"), "PLACE",
        "Ignores breakpoints.",
        ("goto 3", "goto 3 request", "goto 1.1", "goto x3", "goto turn 2", "goto end"), "place",
    ),
    DebugCommand(
        "run", "moving", "go to the start, and on to the first breakpoint", _restart, ("r",), "", examples=("run",),
    ),
    DebugCommand(
        "search", "looking", "go to the next call that contains a text",
        partial(_search, forward=True), ("/", "forward-search", "fo"),
        "[TEXT | /REGEX/]", "Searches the messages that each request adds, and the answers. Ignores case, except for "
        "/REGEX/. Without an argument: repeats the last search.", ("search 产品", "/refund", "search /a+b/"),
    ),
    DebugCommand(
        "reverse-search", "looking", "go back to the previous call that contains a text",
        partial(_search, forward=False),
        ("search-back", "rev"), "[TEXT | /REGEX/]", "", ("reverse-search 产品",),
    ),
)  # fmt: skip
