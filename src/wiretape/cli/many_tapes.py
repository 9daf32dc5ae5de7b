"""Goes over many tapes: searches directories, holds one tape in memory at a time, and reports unreadable ones."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from wiretape.adapters.output import say
from wiretape.errors import UsageError, WiretapeError

if TYPE_CHECKING:
    from wiretape.cli.tapes import OpenedTape

T = TypeVar("T")
PATIENCE = 0.5  # seconds before a progress bar appears
SUFFIXES = (".tape", ".tape.zst")
_SKIPPED = {"node_modules", "__pycache__"}


@dataclass(frozen=True, slots=True)
class UnopenedTape:
    """A tape that could not be read, and why."""

    name: str
    problem: str
    steps: str = ""  # lines that say how to fix it


def tapes_under(start: Path) -> Iterator[Path]:
    """Yield every tape below a directory, by name. Hidden directories and those of packages are skipped."""
    for directory, names, files in os.walk(start):
        names[:] = sorted(name for name in names if not name.startswith(".") and name not in _SKIPPED)
        yield from (Path(directory, name) for name in sorted(files) if name.endswith(SUFFIXES))


def expand(words: Sequence[str]) -> list[str]:
    """Return the tapes that arguments name, each once. A directory stands for all tapes below it."""
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


def opened(name: str) -> OpenedTape | UnopenedTape:
    """Read and decode one tape."""
    from wiretape.cli.tapes import link, read

    try:
        return link(name, read(name))
    except (WiretapeError, OSError) as error:
        return UnopenedTape(name, problem_of(name, error), str(error).partition("\n")[2])


def problem_of(name: str, error: Exception) -> str:
    """Return the first line of a tape's error, without the tape's name."""
    first = str(error).partition("\n")[0].removeprefix(f"{name}: ")
    place = first.removeprefix(f"{name}:")
    return first if place == first else f"line {place}"


def one_by_one(names: Sequence[str], use: Callable[[str], T]) -> Iterator[T]:
    """Yield what `use` returns for each tape. At a terminal, a progress bar appears if that takes long."""
    if len(names) < 2 or not sys.stderr.isatty():
        yield from map(use, names)
        return
    from rich.progress import Progress

    from wiretape.views.printable import clip
    from wiretape.views.terminal import make_console

    started, bar = time.monotonic(), Progress(console=make_console(stderr=True), transient=True)
    task = bar.add_task("", total=len(names))
    try:
        for number, name in enumerate(names):
            if time.monotonic() - started > PATIENCE:
                bar.start()
            bar.update(task, completed=number, description=clip(name, 30))
            yield use(name)
    finally:
        bar.stop()


def say_warnings(opened: OpenedTape) -> None:
    """Print the warnings of a tape on stderr."""
    from wiretape.cli.tapes import say_warning

    for warning in opened.tape.warnings:
        say_warning(warning)


def say_unreadable(tape: UnopenedTape) -> None:
    """Print why a tape could not be read, and how to fix it, on stderr."""
    from wiretape.views.printable import one_line, visible

    say(one_line(f"{tape.name}: {tape.problem}"))
    if tape.steps:
        print(visible(tape.steps), file=sys.stderr)
