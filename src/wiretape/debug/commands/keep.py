"""The commands that keep something: checkpoints and notes."""

from __future__ import annotations

import re
import shlex

from wiretape.debug.annotations import Note
from wiretape.debug.command import DebugCommand
from wiretape.debug.commands.topics import notes_listing
from wiretape.debug.figures import describe_stop
from wiretape.debug.replies import CommandReply, Sentence, sentence
from wiretape.debug.state import DebuggerState
from wiretape.errors import UsageError


def _checkpoint(debugger: DebuggerState, rest: str) -> CommandReply:
    if rest:
        raise UsageError("checkpoint takes no argument: it remembers where you are (info checkpoints lists them)")
    number = max(debugger.checkpoints, default=0) + 1
    debugger.checkpoints[number] = debugger.here
    return sentence(
        f"checkpoint {number}: {describe_stop(debugger.timeline, debugger.here)}; restart {number} comes back here"
    )


def _restart(debugger: DebuggerState, rest: str) -> CommandReply:
    return CommandReply(parts=(debugger.visit(debugger.checkpoints[_number(debugger, rest, "restart")]),))


def _number(debugger: DebuggerState, rest: str, command: str) -> int:
    if not debugger.checkpoints:
        raise UsageError("there is no checkpoint; checkpoint makes one here")
    if not rest:
        return max(debugger.checkpoints)
    number = int(rest) if rest.isascii() and rest.isdecimal() and len(rest) < 9 else None
    if number is None or number not in debugger.checkpoints:
        has = ", ".join(map(str, debugger.checkpoints))
        raise UsageError(f"{command} takes the number of a checkpoint: there is {has}; not {rest!r}")
    return number


def forget_checkpoint(debugger: DebuggerState, rest: str) -> CommandReply:
    """`delete checkpoint N`."""
    number = _number(debugger, rest.strip(), "delete checkpoint")
    del debugger.checkpoints[number]
    return sentence(f"deleted checkpoint {number}")


_DELETION = re.compile(r"(?:-d|delete|del)\s+(\d{1,9})")


def _note(debugger: DebuggerState, rest: str) -> CommandReply:
    """Write a note here, delete one, or list them."""
    if not rest:
        return CommandReply(parts=(notes_listing(debugger),))
    if match := _DELETION.fullmatch(rest):
        return _forget(debugger, int(match[1]))
    here = debugger.selected
    debugger.annotated.number(here)  # a note needs a call
    notes = [*debugger.notes, Note(here, rest)]
    _save(debugger, notes)
    return sentence(f"note {len(notes)} at {describe_stop(debugger.timeline, here)}: {rest}")


def _forget(debugger: DebuggerState, number: int) -> CommandReply:
    if not 1 <= number <= len(debugger.notes):
        raise UsageError(f"there is no note {number}; " + _notes_there(len(debugger.notes)))
    note = debugger.notes[number - 1]
    _save(debugger, debugger.notes[: number - 1] + debugger.notes[number:])
    return CommandReply(parts=(Sentence(f"deleted note {number}: {note.text}"),))


def _notes_there(number: int) -> str:
    return f"info notes lists the {number} there are" if number else "note TEXT writes one"


def _save(debugger: DebuggerState, notes: list[Note]) -> None:
    """On disk first: a note that could not be kept is not shown as if it were."""
    if debugger.save_notes is not None:
        debugger.save_notes(notes)
    debugger.notes = notes


def _fork(debugger: DebuggerState, rest: str) -> CommandReply:
    annotated, stop = debugger.annotated, debugger.selected
    number = annotated.number(stop)
    if annotated.annotations.fork is None:
        raise UsageError("this debugger was started without a way to a model: wiretape fork does it from the shell")
    try:
        words = shlex.split(rest)
    except ValueError as error:
        raise UsageError(f"fork {rest}: {error}: a quotation mark is open") from None
    if stop.tool is not None and "--result" in words and "--tool" not in words:
        words = ["--tool", str(_place(debugger, number, stop.tool)), *words]
    path = annotated.annotations.fork(number, words)
    return sentence(f"forked to {path}; diff {shlex.quote(path)} shows where the runs part", "good")


def _place(debugger: DebuggerState, number: int, tool: int) -> int:
    """Which of the client's tools, from 1: the provider's own have no result to change."""
    own = [use.index for use in debugger.timeline.uses(number) if use.call.kind != "server"]
    if tool not in own:
        raise UsageError("the provider runs this tool: its result is part of the answer; fork --edit answer")
    return own.index(tool) + 1


COMMANDS = (
    DebugCommand(
        "checkpoint", "keeping", "remember this place", _checkpoint, ("cp",), "",
        "info checkpoints lists them, restart N goes back to one, delete checkpoint N forgets it.", ("checkpoint",),
    ),
    DebugCommand(
        "restart", "keeping", "go back to a checkpoint", _restart, (), "[N]", "Without a number: to the latest.",
        ("restart 1",), "checkpoint",
    ),
    DebugCommand(
        "note", "keeping", "write a note at this place, kept beside the tape", _note, ("notes",), "[TEXT | delete N]",
        "Notes are kept in NAME.tape.notes and shown whenever the call is. Without a text: list them.",
        ("note the time zone is lost here", "note delete 1"),
    ),
    DebugCommand(
        "fork",
        "forking",
        "change one thing here, and go on from here live, on a tape of its own",
        _fork,
        (),
        "[OPTIONS] [-- CMD]",
        "The options are those of wiretape fork: --say and --edit answer change what the model said, --result what "
        "the tool here gives, --prompt, --set and --edit request what was asked; --model and --base-url say who goes "
        "on, -o names the new tape. This tape is never changed.",
        ('fork --say "Refused."', 'fork --result "17:30" --model NAME', "fork --edit answer"),
        terminal=True,
    ),
)  # fmt: skip
