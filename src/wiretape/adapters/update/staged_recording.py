"""A recording next to its tape, which replaces the tape when the test or the program has succeeded."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from wiretape._version import __version__
from wiretape.adapters.settings import Settings, redactor_of
from wiretape.errors import TapeUnwritable
from wiretape.matching.session import ReplaySession
from wiretape.matching.values import Answer, LiveRequest
from wiretape.model.http import Exchange, body_bytes
from wiretape.tape.atomic import check_replaceable, lock, put_in_place
from wiretape.tape.editing.edit import merge_tapes
from wiretape.tape.reading.reader import Tape, read_tape
from wiretape.tape.storage import journal_path

# Seconds after which a staged recording that has no writer is deleted: its process was killed.
_ABANDONED = 600
_STAGED = re.compile(r"\..+\.\d+\.new(?:\.zst)?(?:\.journal)?")


def tape_exists(tape: Path) -> bool:
    """True if the tape exists, or a journal that a crash left."""
    return tape.is_file() or journal_path(tape).is_file()


class StagedRecording:
    """The file `.NAME.PID.new` in the directory of a tape. `goes_on`: it starts as a copy of the tape."""

    def __init__(self, tape: Path, goes_on: bool) -> None:
        ending = ".zst" if tape.suffix == ".zst" else ""
        try:
            check_replaceable(tape)
        except OSError as error:
            raise TapeUnwritable(f"{tape}: cannot be written: {error.strerror}") from None
        self.tape = tape
        self.fresh = tape.with_name(f".{tape.name}.{os.getpid()}.new{ending}")
        tape.parent.mkdir(parents=True, exist_ok=True)
        self._remove_abandoned()
        self._remove_files()
        if goes_on:
            for old, new in ((tape, self.fresh), (journal_path(tape), journal_path(self.fresh))):
                if old.exists():
                    shutil.copyfile(old, new)

    def put_in_place(self) -> None:
        """Replace the tape with the recording."""
        put_in_place(self.fresh, self.tape)
        self._remove_files()
        journal_path(self.tape).unlink(missing_ok=True)  # it belongs to the replaced tape

    def merge_in_place(self, settings: Settings) -> None:
        """Replace the tape, but keep the exchanges of the old tape that answer no request of this recording."""
        if tape_exists(self.tape):
            old, new = read_tape(self.tape), read_tape(self.fresh)
            left = unasked(old, new.exchanges)
            if left:
                kept = replace(old, exchanges=left)
                # Without its path, which would be named in the header and soon does not exist.
                recorder = f"wiretape {__version__}"
                merge_tapes([kept, replace(new, path=None)], self.fresh, recorder, redactor_of(settings))
        self.put_in_place()

    def put_aside(self, directory: Path | None) -> Path | None:
        """Keep the old tape, and move the recording to a directory, where a person can look for the reason."""
        try:
            if directory is None:
                return None
            aside = directory / self.tape.name
            aside.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(self.fresh, aside)
            return aside
        except OSError:
            return None
        finally:
            self.remove()

    def remove(self) -> None:
        self._remove_files()
        with suppress(OSError):
            self.tape.parent.rmdir()  # an empty directory: it was created for this recording

    def _remove_files(self) -> None:
        torn = self.fresh.with_name(f"{self.fresh.name}.torn")  # copied from the old tape
        for path in (self.fresh, journal_path(self.fresh), torn):
            path.unlink(missing_ok=True)

    def _remove_abandoned(self) -> None:
        """Delete the staged recordings of killed processes in this directory."""
        for path in self.tape.parent.glob(".*.new*"):
            if _STAGED.fullmatch(path.name):
                with suppress(OSError):
                    if time.time() - path.stat().st_mtime > _ABANDONED and not _has_writer(path):
                        path.unlink()


def _has_writer(path: Path) -> bool:
    """True if a recorder holds the lock of a recording, or of the recording that a journal belongs to."""
    recording = path.with_name(path.name.removesuffix(".journal"))
    if not recording.exists():
        return False
    with recording.open("rb+") as file:
        return not lock(file.fileno())


def unasked(old: Tape, exchanges: Sequence[Exchange]) -> tuple[Exchange, ...]:
    """The exchanges of a tape that answer none of the given requests."""
    session = ReplaySession([old])
    for exchange in exchanges:
        session.answer(_live(exchange))
    numbers = {left.exchange for left in session.report().left_over}
    return tuple(exchange for exchange in old.exchanges if exchange.number in numbers)


def unanswered(exchanges: Sequence[Exchange], tape: Tape) -> list[Exchange]:
    """The exchanges whose requests a tape does not answer."""
    session = ReplaySession([tape])
    return [exchange for exchange in exchanges if not isinstance(session.answer(_live(exchange)), Answer)]


def _live(exchange: Exchange) -> LiveRequest:
    request = exchange.request
    return LiveRequest(request.method, request.url, request.headers, body_bytes(request.body))
