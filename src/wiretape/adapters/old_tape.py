"""The tape that a recording replaces: kept aside until something has been recorded in its place."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from wiretape.errors import TapeUnwritable
from wiretape.tape.atomic import put_in_place
from wiretape.tape.storage import journal_path


class OldTape:
    """A copy, its journal included. A recorder that is killed leaves it beside the tape, as `.NAME.PID.old`.

    It is a copy, and not the file itself under another name: that keeps its lock, and its place for who reads it.
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
        """Nothing took its place. Whether there was one."""
        for path, aside in self._kept:
            put_in_place(aside, path)
        if self._kept and journal_path(self._tape) not in dict(self._kept):
            journal_path(self._tape).unlink(missing_ok=True)  # of the recording that failed to replace it
        put, self._kept = bool(self._kept), []
        return put

    def forget(self) -> None:
        """It has been replaced, or was never touched."""
        for _, aside in self._kept:
            with suppress(OSError):
                aside.unlink(missing_ok=True)
        self._kept = []
