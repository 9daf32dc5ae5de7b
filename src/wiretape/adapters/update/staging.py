"""A test's recording: made beside the tape, and put in its place only when the test has passed."""

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

# A recording that nobody writes any more, and that its test did not put in place within so many seconds: it was killed.
_ABANDONED = 600
_RECORDING = re.compile(r"\..+\.\d+\.new(?:\.zst)?(?:\.journal)?")


def tape_exists(tape: Path) -> bool:
    """Whether there is a tape, or what a crash left of one."""
    return tape.is_file() or journal_path(tape).is_file()


class StagedRecording:
    """A tape in the making. `goes_on`: it begins with what the old one holds."""

    def __init__(self, tape: Path, goes_on: bool) -> None:
        ending = ".zst" if tape.suffix == ".zst" else ""
        try:
            check_replaceable(tape)
        except OSError as error:
            raise TapeUnwritable(f"{tape}: cannot be written: {error.strerror}") from None
        self.tape = tape
        self.fresh = tape.with_name(f".{tape.name}.{os.getpid()}.new{ending}")
        tape.parent.mkdir(parents=True, exist_ok=True)
        self._clear_abandoned()
        self._remove_fresh()
        if goes_on:
            for old, new in ((tape, self.fresh), (journal_path(tape), journal_path(self.fresh))):
                if old.exists():
                    shutil.copyfile(old, new)

    def put_in_place(self) -> None:
        """The recording is the tape from now on."""
        put_in_place(self.fresh, self.tape)
        self._remove_fresh()
        journal_path(self.tape).unlink(missing_ok=True)  # what it holds belongs to the tape that was replaced

    def put_in_place_beside_the_rest(self, settings: Settings) -> None:
        """As above, but exchanges of the old tape that this recording has no newer answer for stay on it."""
        if tape_exists(self.tape):
            old, new = read_tape(self.tape), read_tape(self.fresh)
            left = unasked(old, new.exchanges)
            if left:
                kept = replace(old, exchanges=left)
                # The recording is not named: the header would tell of a file that is no more.
                recorder = f"wiretape {__version__}"
                merge_tapes([kept, replace(new, path=None)], self.fresh, recorder, redactor_of(settings))
        self.put_in_place()

    def put_aside(self, directory: Path | None) -> Path | None:
        """The old tape stays. The recording is kept elsewhere, for whoever wants to know what went wrong."""
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
        self._remove_fresh()
        with suppress(OSError):
            self.tape.parent.rmdir()  # nothing was recorded: an empty directory is no use to anyone

    def _remove_fresh(self) -> None:
        torn = self.fresh.with_name(f"{self.fresh.name}.torn")  # of the old tape, which has it still, or is renewed
        for path in (self.fresh, journal_path(self.fresh), torn):
            path.unlink(missing_ok=True)

    def _clear_abandoned(self) -> None:
        """What runs that were killed have left beside the tapes of this directory."""
        for path in self.tape.parent.glob(".*.new*"):
            if _RECORDING.fullmatch(path.name):
                with suppress(OSError):
                    if time.time() - path.stat().st_mtime > _ABANDONED and not _is_written(path):
                        path.unlink()


def _is_written(path: Path) -> bool:
    """Whether a recorder holds a recording, or that to which a journal belongs."""
    recording = path.with_name(path.name.removesuffix(".journal"))
    if not recording.exists():
        return False
    with recording.open("rb+") as file:
        return not lock(file.fileno())


def unasked(old: Tape, exchanges: Sequence[Exchange]) -> tuple[Exchange, ...]:
    """The exchanges of a tape that answer none of these requests."""
    session = ReplaySession([old])
    for exchange in exchanges:
        session.answer(_asked(exchange))
    numbers = {left.exchange for left in session.report().left_over}
    return tuple(exchange for exchange in old.exchanges if exchange.number in numbers)


def unanswered(exchanges: Sequence[Exchange], tape: Tape) -> list[Exchange]:
    """Those of these exchanges whose requests a tape does not answer."""
    session = ReplaySession([tape])
    return [exchange for exchange in exchanges if not isinstance(session.answer(_asked(exchange)), Answer)]


def _asked(exchange: Exchange) -> LiveRequest:
    request = exchange.request
    return LiveRequest(request.method, request.url, request.headers, body_bytes(request.body))
