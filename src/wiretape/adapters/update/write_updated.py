"""Writes the recording of a passed test to its tape, while other workers may write the same tape."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from wiretape.adapters.settings import load_settings
from wiretape.adapters.update.staged_recording import StagedRecording, tape_exists, unasked
from wiretape.adapters.update.updated_tape import UpdatedTape
from wiretape.errors import WiretapeError
from wiretape.tape.atomic import lock, private
from wiretape.tape.reading.reader import Tape, read_tape

_PATIENCE = 30  # seconds; a tape is written in a fraction of one


class TapePlacement:
    """The tape of one test. Create it before the test records: it never drops what others record from then on.

    `turns`: the file that the workers of a run lock while they write a tape; None: this process is the only one.
    """

    def __init__(self, tape: Path, turns: Path | None) -> None:
        self._tape = tape
        self._turns = turns
        self._before = _identity(tape)

    def keep(self, staged: StagedRecording, *, merge: bool) -> Tape | None:
        """Replace the tape with a recording. `merge`: keep the exchanges that answer none of its requests.

        Return the old tape with the exchanges that were dropped; None if nothing was dropped.
        """
        with _turn(self._turns):
            if merge or _identity(self._tape) != self._before:
                staged.merge_in_place(load_settings(Path.cwd()))
                return None
            dropped = self._dropped(staged)
            staged.put_in_place()
            return dropped

    def update(self, staged: StagedRecording, updated: UpdatedTape, *, drop: bool, append: bool) -> UpdatedTape:
        """Write an updated tape. `drop`: without the exchanges that the test did not ask for.

        `append`: fresh exchanges follow all others. Return the tape that was written: without exchanges that another
        worker has recorded as well, and with the exchanges that stay.
        """
        settings = load_settings(Path.cwd())
        with _turn(self._turns):
            changed = tape_exists(self._tape) and _identity(self._tape) != self._before
            if changed:
                updated = updated.onto(read_tape(self._tape))
            elif not drop:
                updated = updated.behind() if append else updated.in_place()
            if updated.old.incomplete and (changed or not drop):
                # Not spliced: the tape continues, and states itself what it lacks.
                staged.merge_in_place(settings) if changed else staged.put_in_place()
            else:
                updated.write(self._tape, settings)
            return updated

    def _dropped(self, staged: StagedRecording) -> Tape | None:
        if not tape_exists(self._tape):
            return None
        with suppress(WiretapeError):  # an unreadable tape has nothing to drop
            return left_of(read_tape(self._tape), read_tape(staged.fresh))
        return None


def left_of(old: Tape, new: Tape) -> Tape | None:
    """The old tape with the exchanges that answer no request of the new one; None if all answer."""
    left = unasked(old, new.exchanges)
    return replace(old, exchanges=left) if left else None


def _identity(tape: Path) -> tuple[int, int, int] | None:
    """Differs if the file was replaced or changed."""
    try:
        found = tape.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


@contextmanager
def _turn(turns: Path | None) -> Iterator[None]:
    if turns is None:
        yield
        return
    with open(turns, "ab", opener=private) as file:
        patience = time.monotonic() + _PATIENCE
        while not lock(file.fileno()) and time.monotonic() < patience:
            time.sleep(0.005)
        yield
