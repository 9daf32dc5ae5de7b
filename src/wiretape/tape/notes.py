"""The notes of a tape: the JSON file `NAME.tape.notes`, which is replaced as a whole. The tape is never touched."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from wiretape.errors import TapeError, TapeUnwritable
from wiretape.tape.atomic import PRIVATE, rewrite

VERSION = 1


class NoteDocument(BaseModel):
    """A note: at which call, before its `request`, after its `answer`, or at its `tool` (the index of a tool call)."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    call: int = Field(ge=1)
    phase: str = "answer"
    tool: int | None = None
    text: str


class NotesDocument(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    wiretape_notes: int
    notes: list[NoteDocument]


@dataclass(frozen=True, slots=True)
class NotesFile:
    """The notes of one tape."""

    path: Path

    def read(self) -> list[NoteDocument]:
        """All notes; an empty result without a file. Raises TapeError for a file that is something else."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise TapeError(f"{self.path}: cannot be read: {error.strerror or error}") from None
        try:
            document = NotesDocument.model_validate_json(data)
        except ValidationError as error:
            what = error.errors()[0]
            where = ".".join(map(str, what["loc"])) or "the file"
            raise TapeError(f"{self.path}: holds no notes ({where}: {what['msg']}); mend it or move it away") from None
        if document.wiretape_notes > VERSION:
            raise TapeError(f"{self.path}: was written by a newer wiretape: pip install --upgrade wiretape")
        return document.notes

    def write(self, notes: Sequence[NoteDocument]) -> None:
        """Replace all notes. Raises TapeUnwritable. The file exists only if there are notes."""
        try:
            if not notes:
                self.path.unlink(missing_ok=True)
                return
            said = {"wiretape_notes": VERSION, "notes": [note.model_dump(exclude_none=True) for note in notes]}
            text = json.dumps(said, ensure_ascii=False, indent=2) + "\n"
            rewrite(self.path, [text.encode(errors="replace")], PRIVATE)
        except OSError as error:
            raise TapeUnwritable(f"{self.path}: the note is not kept: {error.strerror or error}") from None


def notes_file(tape: Path) -> NotesFile:
    """The notes of a tape."""
    return NotesFile(tape.with_name(tape.name + ".notes"))
