"""The commands for a running program: what happens to its held calls."""

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
    Decision,
    Delay,
    Drop,
    Inject,
    PendingCall,
    Rewrite,
    SendLive,
)
from wiretape.debug.live.program import LiveProgram
from wiretape.debug.replies import CommandReply, Edit, Listing, ListingRow, Sentence, listing, reply, sentence
from wiretape.debug.state import DebuggerState
from wiretape.errors import UsageError
from wiretape.model.http import Exchange, JsonBody
from wiretape.model.wording import plural

_LONGEST_DELAY = 24 * 3600.0
_SHOWN = 20
_FIXED = "it shares its connection with other calls: it can be delayed, but not changed"
_WHY_NOT: dict[Action, str] = {
    "serve": "it has no recorded answer; live sends the request to the model",
    "live": "it cannot be sent to the model here",
    "answer": "it has no answer to edit yet; stepi releases the call and holds it with its answer",
    "request": "its request was answered already: use edit answer",
    "inject": "its answer cannot be replaced",
    "delay": "it cannot be delayed",
    "drop": _FIXED,
    "accept": "it is not a miss",
}


def live_program(debugger: DebuggerState, doing: str) -> LiveProgram:
    if debugger.live is None:
        raise UsageError(
            f"{doing} needs a running program: wiretape debug TAPE -- CMD, or wiretape debug --live -o NEW -- CMD"
        )
    debugger.live.refresh()
    return debugger.live


def _which(live: LiveProgram, rest: str, doing: str, way: Action | None = None) -> tuple[PendingCall, str]:
    """Parse the held call that a command names; returns it and the rest of the line. Raises UsageError."""
    word, _, more = rest.partition(" ")
    held = live.find(_number(word) if word else None, doing)
    if way is not None and way not in held.actions:
        fixed = way == "answer" and held.answer is not None
        raise UsageError(f"call {held.number}: {_FIXED if fixed else _WHY_NOT[way]}")
    return held, more.strip()


def _number(word: str) -> int:
    if not (word.isascii() and word.isdecimal() and len(word) < 9):
        raise UsageError(f"{word!r} is not a call number (held lists the held calls)")
    return int(word)


def _done(live: LiveProgram, held: PendingCall, decision: Decision, words: str) -> CommandReply:
    live.release(held, decision)
    rest = f"; {live.which_wait()}" if live.pending else ""
    return sentence(f"call {held.number} {words}{rest}", "good")


# -- listing -----------------------------------------------------------------------------------------------------------


def _held(debugger: DebuggerState, rest: str) -> CommandReply:
    if rest:
        raise UsageError("held takes no argument")
    return reply(pending_listing(debugger, live_program(debugger, "held")))


def pending_listing(debugger: DebuggerState, live: LiveProgram) -> Listing:
    """The held calls, and how long each has been held."""
    now, rows = live.clock(), []
    for call in live.pending:
        stage = "miss" if call.miss else "answer" if call.answered else "request"
        timeout = f" of {call.client_timeout:g} s" if call.client_timeout is not None else ""
        last = debugger.timeline.step(call.number).call.request.messages[-1:]
        text = first_line(" ".join(getattr(block, "text", "") or "" for message in last for block in message.blocks))
        cells = (str(call.number), call.agent, stage, f"{now - call.since:.0f} s{timeout}", text)
        rows.append(ListingRow(cells, here=call.number == debugger.here.call))
    return listing("call>|agent|held at|waits>|last message*", rows, empty=f"none; {live.how_to_hold()}")


def _output(debugger: DebuggerState, rest: str) -> CommandReply:
    live = live_program(debugger, "output")
    most = _number(rest) if rest else _SHOWN
    lines = list(live.output)[-most:] if most else []
    rows = tuple(ListingRow(("" if line.call is None else str(line.call), line.stream, line.text)) for line in lines)
    columns = "after call>||line*"
    return reply(listing(columns, rows, empty="the program has printed nothing"))


# -- releasing --------------------------------------------------------------------------------------------------------


def _serve(debugger: DebuggerState, rest: str) -> CommandReply:
    live = live_program(debugger, "serve")
    held, _ = _which(live, rest, "serve")
    if held.answer is None:
        why = "no recorded call answers it; accept sends the nearest answer" if held.miss else _WHY_NOT["serve"]
        raise UsageError(f"call {held.number}: {why}")
    what = "its edited answer" if held.edited else "its answer" if held.answered else "the recorded answer"
    return _done(live, held, held.release, f"gets {what}")


def _live(debugger: DebuggerState, rest: str) -> CommandReply:
    live = live_program(debugger, "live")
    held, _ = _which(live, rest, "live", "live")
    kept = f" (its answer is recorded in {live.live_tape})" if live.live_tape else ""
    return _done(live, held, SendLive(), f"is sent to the real model{kept}")


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
        raise UsageError("inject takes a status from 400 to 599, reset, cut:event=5, stall or slow:x10")
    held, _ = _which(live, words[0] if len(words) == 2 else "", "inject", "inject")
    effect = live.editor.fault(words[-1])
    return _done(live, held, Inject(words[-1], effect), f"gets {words[-1]} instead of its answer")


def _delay(debugger: DebuggerState, rest: str) -> CommandReply:
    live = live_program(debugger, "delay")
    words = rest.split()
    if len(words) not in (1, 2):
        raise UsageError("delay takes a number of seconds, such as delay 5")
    try:
        seconds = float(words[-1].removesuffix("s"))
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= _LONGEST_DELAY:
        raise UsageError(f"{words[-1]!r} is not a number of seconds")
    held, _ = _which(live, words[0] if len(words) == 2 else "", "delay", "delay")
    then = held.release
    return _done(live, held, Delay(seconds, then), f"continues in {seconds:g} s")


def _release(debugger: DebuggerState, rest: str) -> CommandReply:
    live = live_program(debugger, "release")
    if rest != "all":
        held, _ = _which(live, rest, "release")
        return _done(live, held, held.release, "continues")
    number = len(live.pending)
    for one in tuple(live.pending):
        live.release(one, one.release)
    return sentence(f"released {plural(number, 'call')}" if number else "no call was held", "good" if number else "dim")


def _stop(debugger: DebuggerState, rest: str) -> CommandReply:
    live = live_program(debugger, "stop")
    if live.exit_code is not None:
        raise UsageError(f"the program ended already, with exit code {live.exit_code}")
    if not live.running:
        raise UsageError("the program is not running yet: continue starts it")
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
        raise UsageError("edit takes answer, body or request; for another call: edit answer 3")
    what, number, given = match[1], match[2] or "", match[3]
    held, _ = _which(live, number, f"edit {what}", "request" if what == "request" else "answer")
    edit = _EDITS[what](live, held)
    return edit.done(given) if given else CommandReply(edit=edit)


def _answer_edit(live: LiveProgram, held: PendingCall) -> Edit:
    assert held.answer is not None
    spoken = live.editor.said(held.answer)
    if not spoken:
        raise UsageError(f"cannot edit the answer to call {held.number}: it has no content")

    def done(text: str) -> CommandReply:
        wanted = _json(text)
        if not isinstance(wanted, list):
            raise UsageError("the edited answer must be a list, as before")
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
    return sentence(f"changed the answer to call {held.number}; serve or continue sends it to the program", "good")


def _request_edit(live: LiveProgram, held: PendingCall) -> Edit:
    body = held.exchange.request.body
    if not isinstance(body, JsonBody):
        raise UsageError(f"cannot edit the request of call {held.number}: its body is not JSON")

    def done(text: str) -> CommandReply:
        value = _json(text)
        live.release(live.find(held.number, "edit"), Rewrite(value))
        return CommandReply(parts=(Sentence(f"changed the request of call {held.number}", "good"),), waits=True)

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
        raise UsageError("say takes the new text of the answer, such as: say It is raining.")
    held, _ = _which(live, match[1] if match is not None and numbered else "", "say", "answer")
    assert held.answer is not None
    spoken = live.editor.said(held.answer)
    place = next((n for n in range(len(spoken) - 1, -1, -1) if "text" in spoken[n]), None)
    if place is None:
        raise UsageError(f"the answer to call {held.number} has no text: use edit answer")
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
        raise UsageError(f"the edited text is not JSON: {error}") from None


COMMANDS = (
    DebugCommand(
        "held", "living", "list the held calls", _held, (), "",
        "A call is held before it is sent, or with its answer before the program gets it. break and step hold calls.",
        ("held",),
    ),
    DebugCommand(
        "serve", "living", "send a held call its answer", _serve, (), "[N]",
        "The recorded or the edited answer. Other calls stay held. serve does not wait for the next held call.",
        ("serve", "serve 3"), "held",
    ),
    DebugCommand(
        "live", "living", "send a held call to the real model", _live, (), "[N]",
        "The model may cost money. The replayed tape stays unchanged; the answer is recorded in NAME-live.tape.",
        ("live", "live 3"), "held",
    ),
    DebugCommand(
        "edit", "living", "change a held call's answer or request", _edit, (), "answer|body|request [N] [JSON]",
        "Opens $EDITOR, unless JSON is given. answer is the content of the answer, body its whole body. A stream "
        "stays a stream. The call stays held: serve or continue releases it.",
        ("edit answer", "edit body", "edit request 3", 'edit answer [{"text": "It is raining."}]'),
    ),
    DebugCommand(
        "say", "living", "replace the text of a held call's answer", _say, (), "[N:] TEXT",
        "Replaces the last text of the answer. The call stays held.", ("say It is raining.", "say 3: Refused."),
    ),
    DebugCommand(
        "inject", "living", "replace a held call's answer with a fault", _inject, (), "[N] FAULT",
        "A status from 400 to 599, reset, cut:event=5, stall, or slow:x10, as for wiretape replay --fault. The "
        "recorded answer remains for the next attempt.", ("inject 429", "inject 3 reset", "inject 529:after=2s"),
    ),
    DebugCommand(
        "delay", "living", "release a held call after some seconds", _delay, (), "[N] SECONDS", "", ("delay 5",),
    ),
    DebugCommand(
        "drop", "living", "close a held call's connection without an answer", _drop, (), "[N]", "", ("drop",), "held",
    ),
    DebugCommand(
        "accept", "living", "answer a miss with the nearest recorded answer", _accept, (), "[N]",
        "The call then counts as played, not as a miss.", ("accept",), "held",
    ),
    DebugCommand(
        "release", "living", "release a held call, or all of them", _release, (), "[N | all]", "",
        ("release", "release all"), "held",
    ),
    DebugCommand(
        "output", "living", "show what the program printed", _output, (), "[N]",
        "The last N lines, each with the last call that was answered before it.", ("output", "output 50"),
    ),
    DebugCommand(
        "stop", "living", "end the program", _stop, ("kill", "k"), "", "Its calls can still be inspected.", ("stop",),
    ),
)  # fmt: skip
