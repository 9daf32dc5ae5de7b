"""`wiretape replay`: run a program against a tape, offline, and say what was played, drifted and missed."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wiretape.errors import MissError, UsageError

if TYPE_CHECKING:
    from wiretape.adapters.replaying import Replaying
    from wiretape.replay.report import ReplayReport
    from wiretape.replay.session import ReplaySession
    from wiretape.replay.values import Outcome

_CMD = "wiretape.cmd"


class _WithProgram(click.Command):
    """Keeps apart what stands behind `--`: the program to run, whose options are its own."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            ctx.meta[_CMD] = args[at + 1 :]
            args = args[:at]
        return super().parse_args(ctx, args)


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for."""

    tapes: tuple[Path, ...]
    pace: float
    let_through: tuple[str, ...]
    tier: str
    repeat: bool
    faults: tuple[str, ...]
    port: int
    report: Path | None
    verbose: bool


@click.command(cls=_WithProgram)
@click.argument("tapes", nargs=-1, required=True, metavar="TAPE... [-- CMD...]", type=click.Path(path_type=Path))
@click.option("--pace", type=click.FloatRange(min=0), default=0, help="0: at once (default), 1: as recorded.")
@click.option(
    "--fault", "faults", metavar="SPEC", multiple=True, help="Inject a fault: 429@3, cut@2:event=5, slow@*:x10."
)
@click.option("--pass", "let_through", metavar="GLOB", multiple=True, help="Let this host through (the agent's tools).")
@click.option(
    "--tier",
    type=click.Choice(["exact", "normalized", "masked", "position"]),
    default="masked",
    help="How alike a request must be at least (default: masked).",
)
@click.option("--repeat", is_flag=True, help="Give a recorded answer again when it was played before.")
@click.option("--port", type=click.IntRange(1, 65535), help="Serve on this port (default: any free one).")
@click.option("--report", type=click.Path(path_type=Path), help="Write what happened to this file, as JSON.")
@click.option("-v", "--verbose", is_flag=True, help="Show what is set for CMD; strays and other answers, too.")
@click.pass_context
def command(ctx: click.Context, /, port: int | None, **asked: object) -> None:
    """Run CMD against recorded answers, offline.

    CMD's base-URL variables point at the replay server, its proxy variables at a port that refuses every connection:
    nothing reaches a model, or any host that no --pass names. What matched, but not exactly, is listed as drift.

    Exit code: CMD's own, if it is not 0; else 3 if a request had no recorded answer; else 0. Without CMD the server
    runs until Ctrl-C, and prints the lines that lead another shell to it.
    """
    options = Options(port=port or 0, **asked)  # type: ignore[arg-type]
    ctx.exit(_replay(options, ctx.meta.get(_CMD, [])))


def _replay(options: Options, argv: Sequence[str]) -> int:
    from wiretape.adapters.child import find_command
    from wiretape.adapters.replaying import Replaying

    if argv:
        find_command(argv, os.environ)
    session = _session(options)
    replaying = Replaying(
        session,
        port=options.port,
        pace=options.pace,
        let_through=options.let_through,
        on_outcome=_live_lines(session, options.verbose),
    )
    with replaying:
        code = _run(replaying, argv, session, options.verbose)
    report = session.report()
    _summary(report)
    if options.report is not None:
        _write(options.report, report)
    return code or (MissError.exit_code if report.missed else 0)


def _session(options: Options) -> ReplaySession:
    from wiretape.adapters.settings import load_settings
    from wiretape.replay.fault_specs import parse_fault
    from wiretape.replay.session import ReplaySession
    from wiretape.replay.values import ReplayOptions, Tier
    from wiretape.tape.reader import read_tape

    faults = tuple(parse_fault(spec) for spec in options.faults)
    settings = load_settings(Path.cwd())
    tapes = [read_tape(path) for path in options.tapes]
    for tape in tapes:
        for warning in tape.warnings:
            click.echo(f"wiretape: {warning}", err=True)
    made = ReplayOptions(Tier[options.tier.upper()], options.repeat, tuple(settings.mask), faults)
    return ReplaySession(tapes, made, names=[str(path) for path in options.tapes])


def _run(replaying: Replaying, argv: Sequence[str], session: ReplaySession, verbose: bool) -> int:
    """Until the program ends, or until Ctrl-C where there is none."""
    from tempfile import TemporaryDirectory

    from wiretape.adapters.child import run_child
    from wiretape.adapters.preparing import prepare
    from wiretape.adapters.surroundings import look_around
    from wiretape.cli.settings_lines import say_settings

    around = look_around(argv, os.environ, Path.cwd())
    variables = replaying.variables(around.environ)
    with TemporaryDirectory(prefix="wiretape-") as scratch:
        prepared = prepare(
            argv, around, replaying.port, replaying=True, knows=session.knows_host, scratch=Path(scratch)
        )
        if verbose:
            say_settings(variables, around, prepared)
        variables |= prepared.variables
        if argv:
            return run_child(prepared.argv, {**os.environ, **variables})
    _print_exports(variables)
    click.echo(f"wiretape: replaying on http://127.0.0.1:{replaying.port} until Ctrl-C", err=True)
    _wait_for_stop()
    return 0


def _print_exports(variables: Mapping[str, str]) -> None:
    for name, value in variables.items():
        click.echo(f"export {name}={shlex.quote(value)}")
    sys.stdout.flush()


def _wait_for_stop() -> None:
    stop = threading.Event()
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda number, frame: stop.set())
    stop.wait()


def _live_lines(session: ReplaySession, verbose: bool) -> Callable[[Outcome], None]:
    """Prints a line for each call; what is neither call nor miss only when asked."""
    from wiretape.replay.values import Answer, Injected, Miss
    from wiretape.views.call_line import call_line
    from wiretape.views.replay_view import outcome_line, tier_mark
    from wiretape.views.terminal import make_console

    console = make_console(stderr=True)

    def show(outcome: Outcome) -> None:
        call = session.call_of(outcome) if isinstance(outcome, Answer) else None
        if call is None and not verbose and not isinstance(outcome, Injected | Miss):
            return
        line = outcome_line(outcome)
        if call is not None and isinstance(outcome, Answer):
            mark = tier_mark(outcome)
            line = call_line(call, console.width, beside=len(mark)).append(mark, "yellow")
        with suppress(OSError, ValueError):  # nobody reads stderr any more: the program still gets its answers
            console.print(line, soft_wrap=True)

    return show


def _summary(report: ReplayReport) -> None:
    from wiretape.views.replay_view import replay_view
    from wiretape.views.terminal import make_console

    console = make_console(stderr=True)
    console.print(replay_view(report))
    if not report.played and not report.missed:
        console.print(
            "No model call reached the replay server.\n"
            "  Does the program read a *_BASE_URL variable, or has it a setting for the base URL?\n"
            "  wiretape doctor -- CMD says what is known of it and what is set for it.\n"
            "  Serve without a program (wiretape replay TAPE) and give it the printed address by hand.",
            style="bold yellow",
        )


def _write(path: Path, report: ReplayReport) -> None:
    try:
        path.write_text(report.model_dump_json(indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write the report to {path}: {error.strerror or error}") from None
