"""Opens tapes for commands, and decides what a damaged tape means for them.

Commands that judge, write or replay fail (exit code 2), unless --partial accepts the rest of the tape. Commands that
show a tape show the rest and exit with 1. Commands that record exit with 4 if the new tape is incomplete.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from wiretape.adapters.output import say
from wiretape.errors import EXIT_INCOMPLETE, TapeError

if TYPE_CHECKING:
    from wiretape.library import AnalyzedTape
    from wiretape.model.run import Run
    from wiretape.tape.reading.reader import Tape

F = TypeVar("F", bound=Callable[..., Any])
EXIT_DAMAGED = 1  # a damaged tape was shown
_PARTIAL = "wiretape.partial"
_CODE = "wiretape.exit-code"


@dataclass(frozen=True, slots=True)
class OpenedTape:
    """A tape, and the name that the user typed."""

    name: str
    tape: AnalyzedTape

    @property
    def run(self) -> Run:
        return self.tape.run


def open_tape(path: str, show: bool = False) -> OpenedTape:
    """Read and decode a tape, and print its warnings. Parameters as in `read`."""
    from wiretape.wire.registry import default_registry

    opened = link(path, read(path, show))
    for warning in (*opened.tape.warnings, *default_registry().problems):
        say_warning(warning)
    return opened


def read(path: str | Path, show: bool = False) -> Tape:
    """Read a tape; `-` is standard input. With `show`, a damaged tape is accepted and the exit code becomes 1."""
    reads = read_to_show if show else read_whole
    if path != "-":
        if Path(path).is_dir():
            raise TapeError(f"{path} is a directory; to see the tapes in it: wiretape ls {path}")
        return reads(path)
    return _read_stdin(reads)


def read_whole(path: str | Path) -> Tape:
    """Read a tape to judge, write or replay it. Raises TapeDamaged, unless --partial is given."""
    from wiretape.tape.reading.reader import read_tape

    return read_tape(path, partial_wanted())


def read_to_show(path: str | Path) -> Tape:
    """Read the readable part of a tape. If it is damaged, the command exits with 1."""
    from wiretape.tape.reading.reader import read_tape

    tape = read_tape(path, partial=True)
    if tape.damage:
        note_damage()
    return tape


def _read_stdin(reads: Callable[[Path], Tape]) -> Tape:
    """Copy standard input to a file, because the reader looks for a journal beside a tape."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as directory:
        data = sys.stdin.buffer.read()
        zst = data.startswith(b"\x28\xb5\x2f\xfd")
        spool = Path(directory) / ("stdin.tape.zst" if zst else "stdin.tape")
        spool.write_bytes(data)
        try:
            return reads(spool)
        except TapeError as error:
            raise type(error)(str(error).replace(str(spool), "standard input")) from error


def link(name: str, tape: Tape) -> OpenedTape:
    """Return a tape that was read, with its run and its analysis."""
    from wiretape.library import analyzed

    return OpenedTape(name, analyzed(tape))


def is_call(word: str) -> bool:
    """True if an argument names a call or an exchange (`2`, `x3`), and no file has that name."""
    return re.fullmatch(r"[xX]?[0-9]{1,9}", word) is not None and not Path(word).exists()


def say_warning(warning: str) -> None:
    """Print a warning about a tape on stderr."""
    from wiretape.views.printable import one_line

    say(f"warning: {one_line(warning)}")


# -- damaged and incomplete tapes --------------------------------------------------------------------------------------


def partial_option(command: F) -> F:
    """Add the option --partial, which `read` obeys."""
    return click.option(
        "--partial",
        is_flag=True,
        expose_value=False,
        callback=lambda ctx, _, value: ctx.meta.__setitem__(_PARTIAL, value),
        help="Use the readable part of a damaged tape.",
    )(command)


def partial_wanted() -> bool:
    """True if the running command was given --partial."""
    ctx = click.get_current_context(silent=True)
    return bool(ctx is not None and ctx.meta.get(_PARTIAL))


def note_damage() -> None:
    """Make the running command exit with 1 instead of 0."""
    _note(EXIT_DAMAGED)


def note_incomplete(tape: Path) -> None:
    """Print that a new tape is incomplete, and make the running command exit with 4 instead of 0."""
    say(f"{tape} IS INCOMPLETE: see the warnings above")
    _note(EXIT_INCOMPLETE)


def _note(code: int) -> None:
    ctx = click.get_current_context(silent=True)
    if ctx is not None:
        ctx.meta[_CODE] = code


def code_of(ctx: click.Context, result: Any) -> Any:
    """Return the result of a command, or the noted exit code if the result is 0."""
    return ctx.meta.get(_CODE, result) if result in (None, 0) else result


# -- results on stdout -------------------------------------------------------------------------------------------------


def print_json(value: object) -> None:
    """Print JSON in UTF-8 on stdout. Control characters are escaped."""
    from wiretape.views.printable import json_text

    write_bytes(json_text(value).encode() + b"\n")


def write_bytes(data: bytes) -> None:
    """Write bytes to stdout, after everything that was printed before."""
    sys.stdout.flush()
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:  # a test's text buffer
        sys.stdout.write(data.decode(errors="backslashreplace"))
        return
    buffer.write(data)
    buffer.flush()
