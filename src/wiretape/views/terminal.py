"""The console that every command prints through. It is the only place that looks at the terminal's environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import IO, Literal

from rich.console import Console
from rich.text import Text

PIPE_WIDTH = 80
NARROWEST = 40  # below this no table is readable: let the terminal wrap


class TapeConsole(Console):
    """A console that takes text as it is: no markup, no emoji codes, no guesses what to highlight."""

    def on_broken_pipe(self) -> None:
        # rich would exit with 1; the command line decides what a closed pipe means.
        raise BrokenPipeError


def make_console(stderr: bool = False, file: IO[str] | None = None) -> Console:
    """A console for stdout (results) or stderr (progress, notices), right in a pipe and without colour."""
    stream = file or (sys.stderr if stderr else sys.stdout)
    return TapeConsole(
        file=file,
        stderr=stderr,
        width=_width(stream),
        color_system=_color_system(stream),
        markup=False,
        emoji=False,
        highlight=False,
    )


def print_lines(console: Console, lines: Sequence[Text]) -> None:
    """What `console.print(line, soft_wrap=True)` prints of each, for lines of which there may be thousands a second.

    Without colour that is the text, and rich takes ten times as long to find that out.
    """
    if not lines:
        return
    if console.color_system is None and not console.legacy_windows:
        console.file.write("".join([f"{line.plain}\n" for line in lines]))
        console.file.flush()
    else:
        console.print(Text("\n").join(lines), soft_wrap=True)


def _is_terminal(stream: IO[str]) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def _width(stream: IO[str]) -> int | None:
    """COLUMNS, else 80 in a pipe, else None: rich asks the terminal, again at every resize."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit() and int(columns) > 0:
        return max(NARROWEST, int(columns))
    return None if _is_terminal(stream) else PIPE_WIDTH


def _color_system(stream: IO[str]) -> Literal["auto", "standard"] | None:
    """None unless a terminal reads it or FORCE_COLOR asks; NO_COLOR goes first."""
    if os.environ.get("NO_COLOR"):
        return None
    if _is_terminal(stream):
        return "auto"
    return "standard" if os.environ.get("FORCE_COLOR") else None
