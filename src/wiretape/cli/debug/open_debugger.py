"""Opens a debugger on a tape, with annotations from the other layers and the notes of the tape."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from wiretape.cli.tapes import say_warning
from wiretape.debug.annotations import Annotations, CallFinding, Note
from wiretape.debug.session import Debugger
from wiretape.debug.timeline import Phase, Stop

if TYPE_CHECKING:
    from wiretape.cli.tapes import OpenedTape
    from wiretape.debug.live.program import LiveProgram
    from wiretape.model.run import Run
    from wiretape.tape.notes import NoteDocument


def open_debugger(path: str) -> Debugger:
    """A debugger at the start of a tape. Raises TapeError."""
    from wiretape.cli.tapes import open_tape

    return debugger_of(open_tape(path, show=True))


def debugger_of(opened: OpenedTape) -> Debugger:
    """A debugger at the start of a tape that was read already. Notes on a tape from standard input are not saved."""
    annotations = annotations_of(opened)
    if opened.name == "-":
        return Debugger(opened.run, annotations)
    from wiretape.tape.notes import notes_file

    file = notes_file(Path(opened.name))
    notes = [_note(document) for document in file.read()]
    return Debugger(opened.run, annotations, notes, lambda notes: file.write([_document(note) for note in notes]))


def from_here(path: str) -> str:
    """The path relative to the working directory, if that is shorter."""
    if path == "-":
        return path
    try:
        return min(path, os.path.relpath(path), key=len)
    except (OSError, ValueError):  # the working directory is gone, or on another drive
        return path


def annotations_of(opened: OpenedTape) -> Annotations:
    """The annotations of a tape, each computed on first use."""
    from wiretape import library

    return library.annotations_of(
        opened.tape,
        from_here(opened.name),
        open_tape=_other_tape,
        fork=lambda call, words: _fork(opened, call, words),
    )


def live_annotations(name: str, debugger: Debugger, live: LiveProgram) -> Annotations:
    """The annotations of a live run, computed from the calls so far."""
    from wiretape.library import RunAnnotations

    def findings() -> list[CallFinding]:
        """Leave out findings about open calls, and about results that may still arrive."""
        held = {call.number for call in live.pending}
        return [
            finding
            for finding in RunAnnotations(debugger.timeline.run).findings()
            if not live.is_open(finding.call)
            and finding.call not in held
            and not (live.running and finding.kind in _STILL_OPEN)
        ]

    return Annotations(
        name=name,
        exchanges=live.exchanges,
        why=lambda step: RunAnnotations(debugger.timeline.run).why(step),
        cache=lambda: RunAnnotations(debugger.timeline.run).cache(),
        findings=findings,
        drift=live.drift,
        open_tape=_other_tape,
    )


def _fork(opened: OpenedTape, call: int, words: Sequence[str]) -> str:
    from wiretape.cli.forking import fork_from_words

    return fork_from_words(opened, call, words)


_STILL_OPEN = ("tool-call-without-result",)  # findings that a later call may resolve


def _other_tape(path: str) -> Run:
    from wiretape.cli.tapes import link, read

    opened = link(path, read(path, show=True))
    for warning in opened.tape.warnings:
        say_warning(warning)
    return opened.run


def _document(note: Note) -> NoteDocument:
    from wiretape.adapters.output import output
    from wiretape.tape.notes import NoteDocument

    assert note.stop.call is not None
    return NoteDocument(call=note.stop.call, phase=note.stop.phase, tool=note.stop.tool, text=output().text(note.text))


def _note(document: NoteDocument) -> Note:
    phases: dict[str, Phase] = {phase: phase for phase in get_args(Phase)}
    return Note(Stop(phases.get(document.phase, "answer"), document.call, document.tool), document.text)
