"""`wiretape debug`: walk a tape as if it happened now, on a screen, line by line, or by a script."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from wiretape.errors import UsageError

if TYPE_CHECKING:
    from wiretape.debug.session import Debugger


@click.command("debug")
@click.argument("tape", metavar="TAPE")
@click.option("--batch", metavar="COMMANDS", help='Do these commands and end: "break 3; continue; print usage".')
@click.option("-f", "--file", "file", metavar="FILE", help="Do the commands in a file (-: standard input) and end.")
@click.option("--lines", is_flag=True, help="Ask for commands line by line, without the screen.")
def command(tape: str, batch: str | None, file: str | None, lines: bool) -> None:
    """Walk the run on a TAPE forward and back, with breakpoints, as if it happened now.

    At a terminal this is a screen (it needs the extra tui), or a prompt; help or ? lists the commands. Where
    standard input is no terminal, its lines are the commands. A script stops at its first error and exits with 2.
    """
    if batch is not None and file is not None:
        raise UsageError("--batch and --file both give the commands: use one of them")
    script = _script(tape, batch, file)
    from wiretape.cli.debugging import open_debugger

    debugger = open_debugger(tape)
    from wiretape.cli.debug_lines import converse, run_script

    if script is not None:
        run_script(debugger, script)
        return
    screen = None if lines else _screen()
    if screen is not None:
        screen(debugger)
    else:
        converse(debugger)


def _script(tape: str, batch: str | None, file: str | None) -> str | None:
    """The commands, where they are given and not asked for."""
    if batch is not None:
        return batch
    if file is not None and file != "-":
        try:
            with open(file, encoding="utf-8") as opened:
                return opened.read()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
            raise UsageError(f"{file}: the commands cannot be read: {why}") from None
    if file is None and sys.stdin.isatty():
        return None
    if tape == "-":
        raise UsageError("standard input is the tape: give the commands with --batch or --file")
    return sys.stdin.read()


def _screen() -> Callable[[Debugger], None] | None:
    """The screen, where there is a terminal for it and the library is installed."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None
    if importlib.util.find_spec("textual") is None:
        click.echo(
            "line by line, since textual is not installed: pip install 'wiretape[tui]' brings a screen", err=True
        )
        return None
    found: Callable[[Debugger], None] = importlib.import_module("wiretape.adapters.screen.app").run_screen
    return found
