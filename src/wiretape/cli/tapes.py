"""Opens tapes for the commands that look: reading, decoding and linking them, and saying what the reader noticed."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wiretape.cli.damaged import read_to_show, read_whole
from wiretape.errors import TapeError

if TYPE_CHECKING:
    from wiretape.library import AnalyzedTape
    from wiretape.model.run import Run
    from wiretape.tape.reading.reader import Tape


@dataclass(frozen=True, slots=True)
class Opened:
    """A tape, and what its calls make together."""

    name: str
    tape: AnalyzedTape

    @property
    def run(self) -> Run:
        return self.tape.run


def open_tape(path: str, show: bool = False) -> Opened:
    """Read and link a tape; warnings go to stderr. `-` reads standard input. `show`: as in `read`."""
    from wiretape.views.printable import one_line
    from wiretape.wire.registry import default_registry

    opened = link(path, read(path, show))
    for warning in (*opened.tape.warnings, *default_registry().problems):
        print(f"wiretape: warning: {one_line(warning)}", file=sys.stderr)
    return opened


def is_call(word: str) -> bool:
    """Whether an argument is meant as a call or an exchange (`2`, `x3`), and is no file of that name."""
    return re.fullmatch(r"[xX]?[0-9]{1,9}", word) is not None and not Path(word).exists()


def read(path: str | Path, show: bool = False) -> Tape:
    """The tape at a path, or on standard input. `show`: a damaged one is shown, not refused."""
    reads = read_to_show if show else read_whole
    if path != "-":
        if Path(path).is_dir():
            raise TapeError(f"{path} is a directory; to see the tapes in it: wiretape ls {path}")
        return reads(path)
    return _read_stdin(reads)


def _read_stdin(reads: Callable[[Path], Tape]) -> Tape:
    """A tape needs a file (its journal stands beside it): spool what comes."""
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


def link(name: str, tape: Tape) -> Opened:
    """A tape that was read, with its run and its analysis."""
    from wiretape.library import analyzed

    return Opened(name, analyzed(tape))


def print_json(value: object) -> None:
    """JSON on stdout: UTF-8 whatever the terminal speaks, nothing in it that a terminal would obey."""
    from wiretape.views.printable import json_text

    write_bytes(json_text(value).encode() + b"\n")


def write_bytes(data: bytes) -> None:
    """Bytes on stdout, after what was printed before them."""
    sys.stdout.flush()
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:  # a test's text buffer
        sys.stdout.write(data.decode(errors="backslashreplace"))
        return
    buffer.write(data)
    buffer.flush()
