"""The commands that keep something: checkpoints, notes and forks."""

from __future__ import annotations

import re
import shlex

from wiretape.debug.annotations import Note
from wiretape.debug.command import DebugCommand
from wiretape.debug.commands.topics import notes_listing
from wiretape.debug.figures import describe_stop
from wiretape.debug.replies import CommandReply, Sentence, reply, sentence
from wiretape.debug.state import DebuggerState
from wiretape.errors import UsageError
from wiretape.model.wording import listed


def _checkpoint(debugger: DebuggerState, rest: str) -> CommandReply:
    if rest:
        raise UsageError("checkpoint takes no argument: it marks the current stop (info checkpoints lists all)")
    number = max(debugger.checkpoints, default=0) + 1
    debugger.checkpoints[number] = debugger.here
    return sentence(
        f"checkpoint {number}: {describe_stop(debugger.timeline, debugger.here)}; restart {number} comes back here"
    )


def _restart(debugger: DebuggerState, rest: str) -> CommandReply:
    return reply(debugger.visit(debugger.checkpoints[_number(debugger, rest, "restart")]))


def _number(debugger: DebuggerState, rest: str, command: str) -> int:
    if not debugger.checkpoints:
        raise UsageError("no checkpoint is set; checkpoint sets one here")
    if not rest:
        return max(debugger.checkpoints)
    number = int(rest) if rest.isascii() and rest.isdecimal() and len(rest) < 9 else None
    if number is None or number not in debugger.checkpoints:
        raise UsageError(
            f"{command} takes the number of a checkpoint ({listed([*debugger.checkpoints])}), not {rest!r}"
        )
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
        return reply(notes_listing(debugger))
    if match := _DELETION.fullmatch(rest):
        return _forget(debugger, int(match[1]))
    here = debugger.selected
    debugger.annotated.number(here)  # a note needs a call
    notes = [*debugger.notes, Note(here, rest)]
    _save(debugger, notes)
    return sentence(f"note {len(notes)} at {describe_stop(debugger.timeline, here)}: {rest}")


def _forget(debugger: DebuggerState, number: int) -> CommandReply:
    if not 1 <= number <= len(debugger.notes):
        hint = "info notes lists all" if debugger.notes else "note TEXT writes one"
        raise UsageError(f"note {number} does not exist; {hint}")
    note = debugger.notes[number - 1]
    _save(debugger, debugger.notes[: number - 1] + debugger.notes[number:])
    return reply(Sentence(f"deleted note {number}: {note.text}"))


def _save(debugger: DebuggerState, notes: list[Note]) -> None:
    """Write the notes to disk first, so that a note that cannot be saved is not shown."""
    if debugger.save_notes is not None:
        debugger.save_notes(notes)
    debugger.notes = notes


def _fork(debugger: DebuggerState, rest: str) -> CommandReply:
    annotated, stop = debugger.annotated, debugger.selected
    number = annotated.number(stop)
    if annotated.annotations.fork is None:
        raise UsageError("cannot fork in this debugger: use wiretape fork in a shell")
    try:
        words = shlex.split(rest)
    except ValueError as error:
        raise UsageError(f"fork {rest}: {error}") from None
    if stop.tool is not None and "--result" in words and "--tool" not in words:
        words = ["--tool", str(_place(debugger, number, stop.tool)), *words]
    path = annotated.annotations.fork(number, words)
    return sentence(f"forked to {path}; diff {shlex.quote(path)} shows where the runs diverge", "good")


def _place(debugger: DebuggerState, number: int, tool: int) -> int:
    """The number of a tool call among those that the client runs, from 1. Raises UsageError for a provider's tool."""
    own = [use.index for use in debugger.timeline.uses(number) if use.call.kind != "server"]
    if tool not in own:
        raise UsageError("the provider runs this tool, so its result is part of the answer: use fork --edit answer")
    return own.index(tool) + 1


COMMANDS = (
    DebugCommand(
        "checkpoint", "keeping", "mark the current stop", _checkpoint, ("cp",), "",
        "info checkpoints lists all, restart N goes back to one, delete checkpoint N removes one.", ("checkpoint",),
    ),
    DebugCommand(
        "restart", "keeping", "go back to a checkpoint", _restart, (), "[N]", "Without a number: to the last one.",
        ("restart 1",), "checkpoint",
    ),
    DebugCommand(
        "note", "keeping", "write a note at the current stop", _note, ("notes",), "[TEXT | delete N]",
        "Notes are stored in NAME.tape.notes and shown with their call. Without a text: list all notes.",
        ("note the time zone is lost here", "note delete 1"),
    ),
    DebugCommand(
        "fork",
        "forking",
        "change one thing here and continue with a live model on a new tape",
        _fork,
        (),
        "[OPTIONS] [-- CMD]",
        "The options are those of wiretape fork: --say and --edit answer change the answer, --result the result of the "
        "tool here, --prompt, --set and --edit request the request; --model and --base-url choose the model, -o names "
        "the new tape. This tape is never changed.",
        ('fork --say "Refused."', 'fork --result "17:30" --model NAME', "fork --edit answer"),
        terminal=True,
    ),
)  # fmt: skip
