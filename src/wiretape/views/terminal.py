"""The console of every command. Only this module reads the terminal's environment variables."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import IO, Literal

from rich.console import Console
from rich.text import Text

PIPE_WIDTH = 80
NARROWEST = 40  # in a narrower terminal tables are unreadable, and the terminal wraps lines


class TapeConsole(Console):
    """A console without markup, emoji codes and highlighting."""

    def on_broken_pipe(self) -> None:
        # rich would exit with 1; the command line handles a closed pipe.
        raise BrokenPipeError


def make_console(stderr: bool = False, file: IO[str] | None = None) -> Console:
    """Return a console for stdout (results) or stderr (progress, notices)."""
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
    """Print lines as `console.print(line, soft_wrap=True)` does, but fast enough for thousands of lines a second.

    Without colour the plain text is written directly, which is ten times as fast.
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
    """Return COLUMNS, else 80 for a pipe, else None: rich then reads the terminal's width."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit() and int(columns) > 0:
        return max(NARROWEST, int(columns))
    return None if _is_terminal(stream) else PIPE_WIDTH


def _color_system(stream: IO[str]) -> Literal["auto", "standard"] | None:
    """Return None unless the stream is a terminal or FORCE_COLOR is set. NO_COLOR takes precedence."""
    if os.environ.get("NO_COLOR"):
        return None
    if _is_terminal(stream):
        return "auto"
    return "standard" if os.environ.get("FORCE_COLOR") else None
