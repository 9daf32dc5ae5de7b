"""Goes over many tapes: directories are searched, one tape is in memory at a time, a broken one is named and passed."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from wiretape.errors import UsageError, WiretapeError

if TYPE_CHECKING:
    from wiretape.cli.tapes import Opened


T = TypeVar("T")
PATIENCE = 0.5  # seconds without a word


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A tape that could not be read, and why."""

    name: str
    problem: str
    steps: str = ""  # how to mend it: lines of their own


def gathered(words: Sequence[str]) -> list[str]:
    """The tapes that arguments name: a directory stands for all tapes below it. Each tape once."""
    from wiretape.cli.inspect.ls import tapes_under

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


def opened(name: str) -> Opened | Unreadable:
    """One tape, read and linked, or what is wrong with it."""
    from wiretape.cli.tapes import link, read

    try:
        return link(name, read(name))
    except (WiretapeError, OSError) as error:
        return Unreadable(name, problem_of(name, error), str(error).partition("\n")[2])


def problem_of(name: str, error: Exception) -> str:
    """What is wrong with a tape, without its name and without the steps that mend it."""
    first = str(error).partition("\n")[0].removeprefix(f"{name}: ")
    place = first.removeprefix(f"{name}:")
    return first if place == first else f"line {place}"


def one_by_one(names: Sequence[str], use: Callable[[str], T]) -> Iterator[T]:
    """What `use` makes of each tape. Where that takes long and somebody watches, a bar on stderr says how far it is."""
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


def say_warnings(opened: Opened) -> None:
    """What the reader noticed, on stderr."""
    from wiretape.views.printable import one_line

    for warning in opened.tape.warnings:
        print(f"wiretape: warning: {one_line(warning)}", file=sys.stderr)


def say_unreadable(tape: Unreadable) -> None:
    from wiretape.views.printable import one_line, visible

    print(f"wiretape: {one_line(f'{tape.name}: {tape.problem}')}", file=sys.stderr)
    if tape.steps:
        print(visible(tape.steps), file=sys.stderr)
