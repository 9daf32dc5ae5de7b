"""The tape that `wiretape record` writes: its name, what must not be there already, and what it replaces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wiretape.errors import TapeError, TapeUnwritable, UsageError

if TYPE_CHECKING:
    from wiretape.cli.run.record import Options
    from wiretape.tape.recording.recorder import Recorder, RecorderSummary


def new_tape(argv: Sequence[str]) -> Path:
    """A name in captures/ that is not taken yet."""
    from wiretape.adapters.launch.programs import tape_name
    from wiretape.tape.storage import journal_path

    name, number = tape_name(argv), 1
    while True:
        path = Path("captures", f"{name}.tape" if number == 1 else f"{name}-{number}.tape")
        if not path.exists() and not journal_path(path).exists():
            return path
        number += 1


def check_tape(options: Options) -> None:
    from wiretape.tape.storage import journal_path

    tape = options.tape
    if tape.is_dir():
        raise TapeUnwritable(f"{tape} is a directory: name a tape in it, such as {tape / 'agent.tape'}")
    there = any(path.exists() and path.stat().st_size for path in (tape, journal_path(tape)))
    if there and not (options.append or options.force or _holds_nothing(tape)):
        raise UsageError(
            f"{tape} exists already, and nothing was recorded\n"
            "  --append goes on with it, --force replaces it, --update keeps what still answers of it"
        )
    if tape.parent == Path("captures"):
        tape.parent.mkdir(exist_ok=True)


def _holds_nothing(tape: Path) -> bool:
    """Whether a tape has no exchange on it, and none in its journal: then there is nothing to lose."""
    from wiretape.tape.reading.reader import read_tape

    try:
        return not read_tape(tape).exchanges
    except TapeError:
        return False


class TapeInPlace:
    """The tape in its place: what stood there before is given up only for something."""

    def __init__(self, options: Options) -> None:
        from wiretape.adapters.old_tape import OldTape

        self._options = options
        self._goes_on = options.append and options.tape.exists()
        self._old = OldTape(options.tape) if options.force else None
        self.put_back = False  # whether nothing came, and the old tape is there again

    def begin(self, make: Callable[[], Recorder]) -> Recorder:
        """The recorder that `make` gives; where it cannot begin, the old tape stays as it is."""
        try:
            return make()
        except BaseException:
            if self._old is not None:
                self._old.forget()
            raise

    def settle(self, summary: RecorderSummary) -> None:
        """Once the recorder is closed: a tape without anything on it does not stay."""
        if not summary.exchanges and not summary.incomplete and not self._goes_on:
            self._options.tape.unlink(missing_ok=True)
        if self._old is None:
            return
        if summary.exchanges:
            self._old.forget()
        else:
            self.put_back = self._old.put_back()
