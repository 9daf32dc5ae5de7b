"""How the recording of a test that has passed becomes its tape: in place of the old one, or beside what that holds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from wiretape.adapters.pytest.options import Mode
from wiretape.adapters.pytest.update.new_tape import UpdatedTape
from wiretape.adapters.settings import load_settings
from wiretape.adapters.update.staging import StagedRecording, tape_exists, unasked
from wiretape.errors import WiretapeError
from wiretape.tape.atomic import lock, private
from wiretape.tape.reading.reader import Tape, read_tape

_PATIENCE = 30  # seconds; a tape is put in place within a fraction of one


class TapePlacement:
    """Of one test. Made before its recording begins: what has come to the tape since then is never dropped.

    `turns`: the file whose lock the workers of one run hold in turn while they put a tape in place; None: there is
    one process, or none is known.
    """

    def __init__(self, tape: Path, turns: Path | None) -> None:
        self._tape = tape
        self._turns = turns
        self._before = _identity(tape)

    def keep(self, made: StagedRecording, mode: Mode) -> Tape | None:
        """The old tape with what no request of the recording answers to any more, where that was dropped."""
        with _turn(self._turns):
            if mode is Mode.ALL or _identity(self._tape) != self._before:
                made.put_in_place_beside_the_rest(load_settings(Path.cwd()))
                return None
            dropped = self._dropped(made) if mode is Mode.REWRITE else None
            made.put_in_place()
            return dropped

    def renew(self, made: StagedRecording, renewal: UpdatedTape, mode: Mode, alone: bool) -> UpdatedTape:
        """Put what a test with mode `new` or `update` has asked on its tape. `alone`: no other test uses the tape.

        What was put there: not what another worker has recorded as well, and with what stays of the old tape.
        """
        settings = load_settings(Path.cwd())
        drops = alone and mode is Mode.UPDATE
        with _turn(self._turns):
            changed = tape_exists(self._tape) and _identity(self._tape) != self._before
            if changed:
                renewal = renewal.onto(read_tape(self._tape))
            elif not drops:
                renewal = renewal.behind() if mode is Mode.NEW else renewal.in_place()
            if renewal.old.incomplete and (changed or not drops):
                # The tape goes on as it is: it says itself what it lacks.
                made.put_in_place_beside_the_rest(settings) if changed else made.put_in_place()
            else:
                renewal.write(self._tape, settings)
            return renewal

    def _dropped(self, made: StagedRecording) -> Tape | None:
        if not tape_exists(self._tape):
            return None
        with suppress(WiretapeError):  # a tape that nobody can read loses nothing
            return left_of(read_tape(self._tape), read_tape(made.fresh))
        return None


def left_of(old: Tape, new: Tape) -> Tape | None:
    """The old tape with the exchanges that answer no request of the new one; None: there are none."""
    left = unasked(old, new.exchanges)
    return replace(old, exchanges=left) if left else None


def _identity(tape: Path) -> tuple[int, int, int] | None:
    """Another file at the same place has another one."""
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
