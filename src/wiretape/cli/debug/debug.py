"""`wiretape debug`: walk a tape as if it happened now, on a screen, line by line, or by a script."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wiretape.cli.options import force_option, pass_option, recorded_hosts_options, tier_option
from wiretape.cli.programs import WithProgram, program_of
from wiretape.errors import UsageError

if TYPE_CHECKING:
    from wiretape.adapters.live.decision_queue import DecisionQueue
    from wiretape.debug.session import Debugger


@click.command("debug", cls=WithProgram)
@click.argument("tape", required=False, metavar="[TAPE] [-- CMD...]")
@click.option("--batch", metavar="COMMANDS", help='Do these commands and end: "break 3; continue; print usage".')
@click.option("-f", "--file", "file", metavar="FILE", help="Do the commands in a file (-: standard input) and end.")
@click.option("--lines", is_flag=True, help="Ask for commands line by line, without the screen.")
@click.option("--live", is_flag=True, help="Record CMD, as wiretape record does: its calls go to real models.")
@click.option("-o", "--output", metavar="NEW.tape", type=click.Path(path_type=Path), help="With --live: the new tape.")
@force_option("With --live: ")
@recorded_hosts_options("With --live: ")
@tier_option("With TAPE and CMD: ", position=True)
@pass_option("With TAPE and CMD: ")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    tape: str | None,
    batch: str | None,
    file: str | None,
    lines: bool,
    live: bool,
    **asked: Any,
) -> None:
    """Walk the run on a TAPE forward and back, with breakpoints, as if it happened now.

    With CMD behind `--` the run does happen now: CMD is played from TAPE as by wiretape replay, or recorded with
    --live, and its calls wait where you hold them: look, and decide what each gets. Exit code: CMD's own, if it is not
    0; else 3 if a request had no recorded answer.

    At a terminal this is a screen (it needs the extra tui), or a prompt; help or ? lists the commands. Where
    standard input is no terminal, its lines are the commands. A script stops at its first error and exits with 2.
    """
    if batch is not None and file is not None:
        raise UsageError("--batch and --file both give the commands: use one of them")
    argv = program_of(ctx)
    _check(tape, argv, live, asked)
    script = _script(tape or "", batch, file)
    screen = None if lines or script is not None else _screen()
    if argv:
        from wiretape.cli.debug.live import LiveOptions, debug_recorded, debug_replayed

        wish = LiveOptions(tuple(argv), script, screen, **asked)
        ctx.exit(debug_recorded(wish) if live else debug_replayed(str(tape), wish))
    from wiretape.cli.debug.line_mode import converse, run_script
    from wiretape.cli.debug.open_debugger import open_debugger

    debugger = open_debugger(str(tape))
    if script is not None:
        run_script(debugger, script)
    elif screen is not None:
        screen(debugger, None)
    else:
        converse(debugger)


def _check(tape: str | None, argv: Sequence[str], live: bool, asked: Mapping[str, Any]) -> None:
    if live:
        if tape is not None:
            raise UsageError(f"--live records a new tape, and {tape} is one to play: leave out one of them")
        if not argv or asked["output"] is None:
            raise UsageError("--live needs a new tape and a program: wiretape debug --live -o NEW.tape -- CMD")
        return
    if tape is None:
        raise UsageError("which tape? wiretape debug TAPE, or wiretape debug --live -o NEW.tape -- CMD")
    if asked["output"] is not None:
        raise UsageError("-o names the tape that --live records: nothing is recorded here")


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


def _screen() -> Callable[[Debugger, DecisionQueue | None], None] | None:
    """The screen, where there is a terminal for it and the library is installed."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None
    if importlib.util.find_spec("textual") is None:
        click.echo(
            "line by line, since textual is not installed: pip install 'wiretape[tui]' brings a screen", err=True
        )
        return None
    found: Callable[[Debugger, DecisionQueue | None], None] = importlib.import_module(
        "wiretape.adapters.tui.app"
    ).run_screen
    return found
