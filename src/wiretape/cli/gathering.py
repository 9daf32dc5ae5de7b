"""Goes over many tapes: directories are searched, one tape is in memory at a time, a broken one is named and passed."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wiretape.errors import UsageError, WiretapeError

if TYPE_CHECKING:
    from wiretape.cli.tapes import Opened


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A tape that could not be read, and why."""

    name: str
    problem: str


def gathered(words: Sequence[str]) -> list[str]:
    """The tapes that arguments name: a directory stands for all tapes below it. Each tape once."""
    from wiretape.cli.ls import tapes_under

    found: dict[str, None] = {}
    for word in words:
        if word != "-" and Path(word).is_dir():
            below = [str(path) for path in tapes_under(Path(word))]
            if not below:
                raise UsageError(f"no tapes under {word}; to make one: wiretape record -o captures/NAME.tape -- CMD")
            found |= dict.fromkeys(below)
        else:
            found[word] = None
    return list(found)


def each(names: Sequence[str]) -> Iterator[Opened | Unreadable]:
    """Each tape, read and linked when it is asked for; the one before may be forgotten by then."""
    from wiretape.cli.tapes import link, read

    for name in names:
        try:
            yield link(name, read(name))
        except (WiretapeError, OSError) as error:
            yield Unreadable(name, str(error).removeprefix(f"{name}: "))


def say_warnings(opened: Opened) -> None:
    """What the reader noticed, on stderr."""
    from wiretape.views.printable import one_line

    for warning in opened.tape.warnings:
        print(f"wiretape: warning: {one_line(warning)}", file=sys.stderr)


def say_unreadable(tape: Unreadable) -> None:
    from wiretape.views.printable import one_line

    print(f"wiretape: {one_line(f'{tape.name}: {tape.problem}')}", file=sys.stderr)
