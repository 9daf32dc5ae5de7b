"""The commands for a program at work: what is done with the calls that wait."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from wiretape.debug.command import DebugCommand
from wiretape.debug.figures import first_line
from wiretape.debug.live.pending_calls import (
    Accept,
    Action,
    Continue,
    Decision,
    Delay,
    Drop,
    Inject,
    PendingCall,
    Rewrite,
    SendLive,
)
from wiretape.debug.live.program import LiveProgram
from wiretape.debug.replies import CommandReply, Edit, Listing, ListingRow, Sentence, listing, sentence
from wiretape.debug.state import DebuggerState
from wiretape.errors import UsageError
from wiretape.model.http import Exchange, JsonBody
from wiretape.model.wording import plural

_LONGEST_DELAY = 24 * 3600.0
_SHOWN = 20
_FIXED = "its connection carries other calls, too: it can wait, and not be changed"
_WHY_NOT: dict[Action, str] = {
    "serve": "there is no recorded answer to give; live asks the model",
    "live": "the model cannot be asked here",
    "answer": "there is no answer to edit yet; stepi lets the call go, and holds it with its answer",
    "request": "its request has been answered already: edit answer changes what the program gets",
    "inject": "nothing can be put in the place of its answer",
    "delay": "it cannot be delayed",
    "drop": _FIXED,
    "accept": "it is no miss",
}


def live_program(debugger: DebuggerState, doing: str) -> LiveProgram:
    if debugger.live is None:
        raise UsageError(
            f"{doing} needs a program at work: wiretape debug TAPE -- CMD, or wiretape debug --live -o NEW -- CMD"
        )
    debugger.live.refresh()
    return debugger.live


def _which(live: LiveProgram, rest: str, doing: str, way: Action | None = None) -> tuple[PendingCall, str]:
    """The held call that a command is about, and what else stands in it."""
    word, _, more = rest.partition(" ")
    held = live.find(_number(word) if word else None, doing)
    if way is not None and way not in held.actions:
        fixed = way == "answer" and held.answer is not None
        raise UsageError(f"call {held.number}: {_FIXED if fixed else _WHY_NOT[way]}")
    return held, more.strip()


def _number(word: str) -> int:
    if not (word.isascii() and word.isdecimal() and len(word) < 9):
        raise UsageError(f"{word!r} is no number of a call (held lists those that wait)")
    return int(word)


def _done(live: LiveProgram, held: PendingCall, decision: Decision, words: str) -> CommandReply:
    live.release(held, decision)
    rest = f"; {live.which_wait()}" if live.pending else ""
    return sentence(f"call {held.number} {words}{rest}", "good")


# -- listing -----------------------------------------------------------------------------------------------------------


def _held(debugger: DebuggerState, rest: str) -> CommandReply:
    if rest:
        raise UsageError("held takes no argument: it lists the calls that wait")
    return CommandReply(parts=(pending_listing(debugger, live_program(debugger, "held")),))


def pending_listing(debugger: DebuggerState, live: LiveProgram) -> Listing:
    now, rows = live.clock(), []
    for one in live.pending:
        stage = "miss" if one.miss else "answer" if one.answered else "request"
        waited = f"{now - one.since:.0f} s" + (f" of {one.patience:g} s" if one.patience is not None else "")
        step = debugger.timeline.step(one.number)
        last = step.call.request.messages[-1:]
        text = first_line(" ".join(getattr(block, "text", "") or "" for message in last for block in message.blocks))
        cells = (str(one.number), one.agent, stage, waited, text)
        rows.append(ListingRow(cells, here=one.number == debugger.here.call))
    return listing("call>|agent|held at|waits>|last message*", rows, empty=f"none; {live.how_to_hold()}")


def _output(debugger: DebuggerState, rest: str) -> CommandReply:
    live = live_program(debugger, "output")
    many_lines = _number(rest) if rest else _SHOWN
    lines = list(live.output)[-many_lines:] if many_lines else []
    rows = tuple(ListingRow(("" if line.call is None else str(line.call), line.stream, line.text)) for line in lines)
    columns = "after call>||line*"
    return CommandReply(parts=(listing(columns, rows, empty="the program has printed nothing"),))


# -- letting go --------------------------------------------------------------------------------------------------------


def _serve(debugger: DebuggerState, rest: str) -> CommandReply:
    live = live_program(debugger, "serve")
    held, _ = _which(live, rest, "serve")
    if held.answer is None:
        why = "no recorded call answers it; accept gives it the nearest" if held.miss else _WHY_NOT["serve"]
        raise UsageError(f"call {held.number}: {why}")
    what = "its edited answer" if held.edited else "its answer" if held.answered else "the recorded answer"
    return _done(live, held, Continue(held.answer if held.edited else None), f"gets {what}")


def _live(debugger: DebuggerState, rest: str) -> CommandReply:
    live = live_program(debugger, "live")
    held, _ = _which(live, rest, "live", "live")
    kept = f" (its answer is kept in {live.live_tape})" if live.live_tape else ""
    return _done(live, held, SendLive(), f"is asked of the real model{kept}")


def _accept(debugger: DebuggerState, rest: str) -> CommandReply:
    live = live_program(debugger, "accept")
    held, _ = _which(live, rest, "accept", "accept")
    return _done(live, held, Accept(), "gets the nearest recorded answer")


def _drop(debugger: DebuggerState, rest: str) -> CommandReply:
    live = live_program(debugger, "drop")
    held, _ = _which(live, rest, "drop", "drop")
    return _done(live, held, Drop(), "gets no answer: its connection is closed")


def _inject(debugger: DebuggerState, rest: str) -> CommandReply:
    live = live_program(debugger, "inject")
    words = rest.split()
    if len(words) not in (1, 2):
        raise UsageError("inject what? A status from 400 to 599, reset, cut:event=5, stall or slow:x10")
    held, _ = _which(live, words[0] if len(words) == 2 else "", "inject", "inject")
    effect = live.editor.fault(words[-1])
    return _done(live, held, Inject(words[-1], effect), f"gets {words[-1]} in the place of its answer")


def _delay(debugger: DebuggerState, rest: str) -> CommandReply:
    live = live_program(debugger, "delay")
    words = rest.split()
    if len(words) not in (1, 2):
        raise UsageError("delay for how many seconds? Such as: delay 5")
    try:
        seconds = float(words[-1].removesuffix("s"))
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= _LONGEST_DELAY:
        raise UsageError(f"{words[-1]!r} is no number of seconds")
    held, _ = _which(live, words[0] if len(words) == 2 else "", "delay", "delay")
    then = Continue(held.answer if held.edited else None)
    return _done(live, held, Delay(seconds, then), f"goes on in {seconds:g} s")


def _release(debugger: DebuggerState, rest: str) -> CommandReply:
    live = live_program(debugger, "release")
    if rest != "all":
        held, _ = _which(live, rest, "release")
        return _done(live, held, Continue(held.answer if held.edited else None), "goes on")
    number = len(live.pending)
    for one in tuple(live.pending):
        live.release(one, Continue(one.answer if one.edited else None))
    return sentence(f"{plural(number, 'call')} let go" if number else "no call was held", "good" if number else "dim")


def _stop(debugger: DebuggerState, rest: str) -> CommandReply:
    live = live_program(debugger, "stop")
    if live.exit_code is not None:
        raise UsageError(f"the program has ended already, with exit code {live.exit_code}")
    if not live.running:
        raise UsageError("the program has not been started yet: continue does")
    live.released = True
    for one in tuple(live.pending):
        live.release(one, Drop())
    live.stop()
    return CommandReply(waits=True)


# -- changing ----------------------------------------------------------------------------------------------------------


def _edit(debugger: DebuggerState, rest: str) -> CommandReply:
    live = live_program(debugger, "edit")
    match = re.match(r"(answer|body|request)\b\s*(\d{1,8}(?=\s|$))?\s*(.*)", rest, re.DOTALL)
    if match is None:
        raise UsageError("edit what? edit answer, edit body or edit request; of another call: edit answer 3")
    what, number, given = match[1], match[2] or "", match[3]
    held, _ = _which(live, number, f"edit {what}", "request" if what == "request" else "answer")
    edit = _EDITS[what](live, held)
    return edit.done(given) if given else CommandReply(edit=edit)


def _answer_edit(live: LiveProgram, held: PendingCall) -> Edit:
    assert held.answer is not None
    spoken = live.editor.said(held.answer)
    if not spoken:
        raise UsageError(f"the answer to call {held.number} says nothing that could be edited")

    def done(text: str) -> CommandReply:
        wanted = _json(text)
        if not isinstance(wanted, list):
            raise UsageError("this must be a list of what the answer says, as it was")
        return _changed(live, held, wanted)

    return Edit(_written(spoken), done)


def _body_edit(live: LiveProgram, held: PendingCall) -> Edit:
    assert held.answer is not None

    def done(text: str) -> CommandReply:
        return _answered(live, held, lambda answer: live.editor.rewritten(answer, text))

    return Edit(live.editor.written(held.answer), done)


def _changed(live: LiveProgram, held: PendingCall, wanted: list[Any]) -> CommandReply:
    return _answered(live, held, lambda answer: live.editor.edited(answer, wanted))


def _answered(live: LiveProgram, held: PendingCall, change: Callable[[Exchange], Exchange]) -> CommandReply:
    held = live.find(held.number, "edit")
    assert held.answer is not None
    live.change(held, change(held.answer))
    live.refresh()
    return sentence(
        f"the answer to call {held.number} is another now; serve or continue gives it to the program", "good"
    )


def _request_edit(live: LiveProgram, held: PendingCall) -> Edit:
    body = held.exchange.request.body
    if not isinstance(body, JsonBody):
        raise UsageError(f"the request of call {held.number} is no JSON: it cannot be edited")

    def done(text: str) -> CommandReply:
        value = _json(text)
        live.release(live.find(held.number, "edit"), Rewrite(value))
        return CommandReply(parts=(Sentence(f"the request of call {held.number} is another now", "good"),), waits=True)

    return Edit(_written(body.value), done)


_EDITS: dict[str, Callable[[LiveProgram, PendingCall], Edit]] = {
    "answer": _answer_edit,
    "body": _body_edit,
    "request": _request_edit,
}


def _say(debugger: DebuggerState, rest: str) -> CommandReply:
    live = live_program(debugger, "say")
    match = re.match(r"(\d{1,8}):\s*", rest)
    numbered = match is not None and any(one.number == int(match[1]) for one in live.pending)
    text = rest[match.end() :] if match is not None and numbered else rest
    if not text:
        raise UsageError("say what? The answer says this text instead of its own: say It is raining.")
    held, _ = _which(live, match[1] if match is not None and numbered else "", "say", "answer")
    assert held.answer is not None
    spoken = live.editor.said(held.answer)
    place = next((n for n in range(len(spoken) - 1, -1, -1) if "text" in spoken[n]), None)
    if place is None:
        raise UsageError(f"the answer to call {held.number} says no text: edit answer changes what it asks for")
    spoken[place] = {"text": _unquoted(text)}
    return _changed(live, held, spoken)


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] in "'\"" else text


def _written(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise UsageError(f"what was written is no JSON: {error}") from None


COMMANDS = (
    DebugCommand(
        "held", "living", "list the calls that wait", _held, (), "",
        "A call is held before it is sent, or with its answer before the program gets it. break and step hold calls.",
        ("held",),
    ),
    DebugCommand(
        "serve", "living", "give a held call its answer", _serve, (), "[N]",
        "The recorded one, or the edited one. Other calls stay held, and nothing is waited for: continue does that.",
        ("serve", "serve 3"), "held",
    ),
    DebugCommand(
        "live", "living", "ask the real model for a held call", _live, (), "[N]",
        "It costs what it costs. The tape that is played stays as it is; the answer is kept on one beside it, "
        "NAME-live.tape.", ("live", "live 3"), "held",
    ),
    DebugCommand(
        "edit", "living", "change a held call's answer or request", _edit, (), "answer|body|request [N] [JSON]",
        "Opens $EDITOR; JSON behind it is taken instead. answer is what it says, body all of it as it crosses the "
        "wire. A stream stays a stream. The call stays held: serve or continue lets it go.",
        ("edit answer", "edit body", "edit request 3", 'edit answer [{"text": "It is raining."}]'),
    ),
    DebugCommand(
        "say", "living", "let a held call's answer say something else", _say, (), "[N:] TEXT",
        "The last text of the answer becomes this. The call stays held.", ("say It is raining.", "say 3: Refused."),
    ),
    DebugCommand(
        "inject", "living", "give a held call a fault in its answer's place", _inject, (), "[N] FAULT",
        "A status from 400 to 599, reset, cut:event=5, stall, or slow:x10, as --fault of wiretape replay has them. The "
        "recorded answer is left for the next attempt.", ("inject 429", "inject 3 reset", "inject 529:after=2s"),
    ),
    DebugCommand(
        "delay", "living", "let a held call go after some seconds", _delay, (), "[N] SECONDS", "", ("delay 5",),
    ),
    DebugCommand(
        "drop", "living", "close a held call's connection without an answer", _drop, (), "[N]", "", ("drop",), "held",
    ),
    DebugCommand(
        "accept", "living", "give a miss the nearest recorded answer", _accept, (), "[N]",
        "Where a program has left the tape. It counts as played, and no longer as a miss.", ("accept",), "held",
    ),
    DebugCommand(
        "release", "living", "let a held call go, or all", _release, (), "[N | all]", "",
        ("release", "release all"), "held",
    ),
    DebugCommand(
        "output", "living", "show what the program printed", _output, (), "[N]",
        "The last N lines, each with the call that was last answered before it.", ("output", "output 50"),
    ),
    DebugCommand(
        "stop", "living", "end the program", _stop, ("kill", "k"), "", "Its calls can still be looked at.", ("stop",),
    ),
)  # fmt: skip
