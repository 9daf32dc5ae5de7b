"""Opens a debugger on a tape: hands the pure core what the other layers know, and keeps its notes beside the tape."""

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
    from wiretape.tape.notes import NoteDocument, NotesFile


def open_debugger(path: str) -> Debugger:
    """A debugger at the start of a tape. Raises TapeError."""
    from wiretape.cli.tapes import open_tape

    return debugger_of(open_tape(path, show=True))


def debugger_of(opened: OpenedTape) -> Debugger:
    """A debugger at the start of a tape that is read already. The notes of a tape on standard input are not kept."""
    known = annotations_of(opened)
    if opened.name == "-":
        return Debugger(opened.run, known)
    from wiretape.tape.notes import notes_file

    file = notes_file(Path(opened.name))
    return Debugger(opened.run, known, [_note(document) for document in file.read()], _Keeper(file))


def from_here(path: str) -> str:
    """A tape's path from the working directory, where that is shorter."""
    if path == "-":
        return path
    try:
        return min(path, os.path.relpath(path), key=len)
    except (OSError, ValueError):  # the working directory is gone, or on another drive
        return path


def annotations_of(opened: OpenedTape) -> Annotations:
    """What is known of a tape, asked for when it is needed."""
    from wiretape import library

    return library.annotations_of(
        opened.tape,
        from_here(opened.name),
        open_tape=_other_tape,
        fork=lambda call, words: _fork(opened, call, words),
    )


def live_annotations(name: str, debugger: Debugger, live: LiveProgram) -> Annotations:
    """What is known of a run that is still happening: asked of the run as it is by then."""

    from wiretape.library import RunAnnotations

    def findings() -> list[CallFinding]:
        """Those that time cannot mend: an answer, or a tool's result, that may still come is not missed."""
        waiting = {one.number for one in live.pending}
        return [
            one
            for one in RunAnnotations(debugger.timeline.run).findings()
            if not live.is_open(one.call) and one.call not in waiting and not (live.running and one.kind in _STILL_OPEN)
        ]

    return Annotations(
        name=name,
        exchanges=live.exchanges,
        why=lambda step: RunAnnotations(debugger.timeline.run).why(step),
        cache=lambda: RunAnnotations(debugger.timeline.run).cache(),
        findings=findings,
        drift=live.drifts,
        open_tape=_other_tape,
    )


def _fork(opened: OpenedTape, call: int, words: Sequence[str]) -> str:
    from wiretape.cli.forking import fork_from_words

    return fork_from_words(opened, call, words)


_STILL_OPEN = ("tool-call-without-result",)  # findings about what has not come yet


def _other_tape(path: str) -> Run:
    from wiretape.cli.tapes import link, read

    opened = link(path, read(path, show=True))
    for warning in opened.tape.warnings:
        say_warning(warning)
    return opened.run


class _Keeper:
    """Writes all notes to their file."""

    def __init__(self, file: NotesFile) -> None:
        self._file = file

    def __call__(self, notes: Sequence[Note]) -> None:
        self._file.write([_document(note) for note in notes])


def _document(note: Note) -> NoteDocument:
    from wiretape.adapters.output import output
    from wiretape.tape.notes import NoteDocument

    assert note.stop.call is not None
    return NoteDocument(call=note.stop.call, phase=note.stop.phase, tool=note.stop.tool, text=output().text(note.text))


def _note(document: NoteDocument) -> Note:
    phases: dict[str, Phase] = {phase: phase for phase in get_args(Phase)}
    return Note(Stop(phases.get(document.phase, "answer"), document.call, document.tool), document.text)
