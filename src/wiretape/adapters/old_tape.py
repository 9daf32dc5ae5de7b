"""A copy of the tape that a recording replaces, until the recording has its first exchange."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from wiretape.errors import TapeUnwritable
from wiretape.tape.atomic import put_in_place
from wiretape.tape.storage import journal_path


class OldTape:
    """Copies of a tape and its journal, named `.NAME.PID.old`. A killed recorder leaves them in the directory.

    The tape itself is not renamed: it keeps its lock, and programs can read it.
    """

    def __init__(self, tape: Path) -> None:
        self._tape = tape
        self._kept: list[tuple[Path, Path]] = []
        try:
            for path in (tape, journal_path(tape)):
                if path.is_file() and path.stat().st_size:
                    aside = path.with_name(f".{path.name}.{os.getpid()}.old")
                    self._kept.append((path, aside))
                    shutil.copy2(path, aside)
        except OSError as error:
            self.forget()
            raise TapeUnwritable(f"{tape}: cannot be kept while it is replaced: {error.strerror or error}") from None

    def __bool__(self) -> bool:
        return bool(self._kept)

    def put_back(self) -> bool:
        """Restore the tape. Return False if it did not exist."""
        for path, aside in self._kept:
            put_in_place(aside, path)
        if self._kept and journal_path(self._tape) not in dict(self._kept):
            journal_path(self._tape).unlink(missing_ok=True)  # of the recording without exchanges
        put, self._kept = bool(self._kept), []
        return put

    def forget(self) -> None:
        """Delete the copies."""
        for _, aside in self._kept:
            with suppress(OSError):
                aside.unlink(missing_ok=True)
        self._kept = []
