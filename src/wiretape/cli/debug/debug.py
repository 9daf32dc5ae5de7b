"""`wiretape debug`: walk a tape forward and back, on a screen, line by line, or with a script."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wiretape.cli.programs import WithProgram, program_of
from wiretape.cli.shared_options import force_option, pass_option, recorded_hosts_options, tier_option
from wiretape.errors import UsageError

if TYPE_CHECKING:
    from wiretape.adapters.live.decision_queue import DecisionQueue
    from wiretape.debug.session import Debugger


@click.command("debug", cls=WithProgram)
@click.argument("tape", required=False, metavar="[TAPE] [-- CMD...]")
@click.option("--batch", metavar="COMMANDS", help='Execute these commands and exit: "break 3; continue; print usage".')
@click.option(
    "-f", "--file", "file", metavar="FILE", help="Execute the commands in a file (-: standard input) and exit."
)
@click.option("--lines", is_flag=True, help="Read commands line by line, without the screen.")
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
    **live_options: Any,
) -> None:
    """Walk the run on a TAPE forward and back, with breakpoints, as if it happened now.

    With CMD after `--` the run happens now: CMD is replayed from TAPE as by wiretape replay, or recorded with --live.
    Breakpoints hold its calls: inspect each, and decide what answer it gets. Exit code: CMD's own, if it is not 0;
    else 3 if a request had no recorded answer.

    On a terminal, this opens a screen (with the extra tui) or a prompt; help or ? lists the commands. If standard
    input is not a terminal, its lines are the commands. A script stops at its first error and exits with 2.
    """
    if batch is not None and file is not None:
        raise UsageError("--batch and --file both give the commands: use one of them")
    argv = program_of(ctx)
    _check(tape, argv, live, live_options)
    script = _script(tape or "", batch, file)
    screen = None if lines or script is not None else _screen()
    if argv:
        from wiretape.cli.debug.live import LiveOptions, debug_recorded, debug_replayed

        options = LiveOptions(tuple(argv), script, screen, **live_options)
        ctx.exit(debug_recorded(options) if live else debug_replayed(str(tape), options))
    from wiretape.cli.debug.line_mode import converse, run_script
    from wiretape.cli.debug.open_debugger import open_debugger

    debugger = open_debugger(str(tape))
    if script is not None:
        run_script(debugger, script)
    elif screen is not None:
        screen(debugger, None)
    else:
        converse(debugger)


def _check(tape: str | None, argv: Sequence[str], live: bool, live_options: Mapping[str, Any]) -> None:
    if live:
        if tape is not None:
            raise UsageError(f"--live records a new tape, but {tape} is a tape to replay: omit one of them")
        if not argv or live_options["output"] is None:
            raise UsageError("--live needs a new tape and a program: wiretape debug --live -o NEW.tape -- CMD")
        return
    if tape is None:
        raise UsageError("which tape? wiretape debug TAPE, or wiretape debug --live -o NEW.tape -- CMD")
    if live_options["output"] is not None:
        raise UsageError("-o needs --live: it names the tape to record")


def _script(tape: str, batch: str | None, file: str | None) -> str | None:
    """The script of commands; None if the user types them."""
    if batch is not None:
        return batch
    if file is not None and file != "-":
        try:
            with open(file, encoding="utf-8") as opened:
                return opened.read()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise UsageError(f"cannot read the commands in {file}: {why}") from None
    if file is None and sys.stdin.isatty():
        return None
    if tape == "-":
        raise UsageError("standard input is the tape: give the commands with --batch or --file")
    return sys.stdin.read()


def _screen() -> Callable[[Debugger, DecisionQueue | None], None] | None:
    """The screen, if there is a terminal and textual is installed."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None
    if importlib.util.find_spec("textual") is None:
        click.echo(
            "textual is not installed, so this is line mode; for the screen: pip install 'wiretape[tui]'", err=True
        )
        return None
    found: Callable[[Debugger, DecisionQueue | None], None] = importlib.import_module(
        "wiretape.adapters.tui.app"
    ).run_screen
    return found
