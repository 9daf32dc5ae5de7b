"""`wiretape verify`: run a program live, and say whether a tape of it still tells how things are."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from wiretape.adapters.output import typed
from wiretape.cli.damaged import INCOMPLETE, partial_option, read_whole
from wiretape.cli.with_program import WithProgram, program_of
from wiretape.errors import UsageError

if TYPE_CHECKING:
    from wiretape.cli.run.record import Options
    from wiretape.matching.verify.freshness import Freshness
    from wiretape.tape.reading.reader import Tape

DRIFTED = 1
UNDECIDED = 2


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for, besides how to record."""

    tape: Path
    against: Path | None
    keep: Path | None
    tier: str
    tolerance: float
    as_json: bool
    verbose: bool


@click.command("verify", cls=WithProgram)
@click.option(
    "--against", metavar="LIVE", type=click.Path(path_type=Path), help="Compare with this tape, and run nothing."
)
@click.option("--keep", metavar="FILE", type=click.Path(path_type=Path), help="Keep the live recording as this tape.")
@click.option(
    "--tier",
    type=click.Choice(["exact", "normalized", "masked"]),
    default="masked",
    help="How alike requests must be to be the same (default: masked).",
)
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    default=0.25,
    help="By which part a call's tokens may differ (default: 0.25).",
)
@click.option("--host", "hosts", metavar="GLOB", multiple=True, help="Record this host, too, as record does.")
@click.option("--all", "everything", is_flag=True, help="Record every host.")
@click.option("--upstream", metavar="URL", help="Where requests to the base URL go that name no host.")
@click.option("--keep-unset", is_flag=True, help="Set no base-URL variable that is not set.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("-v", "--verbose", is_flag=True, help="Every call, and what is set for CMD.")
@click.argument("tape", metavar="TAPE [-- CMD...]", type=click.Path(path_type=Path))
@partial_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    tape: Path,
    hosts: tuple[str, ...],
    everything: bool,
    upstream: str | None,
    keep_unset: bool,
    **asked: object,
) -> None:
    """Run CMD live, and compare what it asks and gets with TAPE.

    Real models are called. Requests are compared as replay compares them: clocks and ids are no changes. Of answers the
    shape counts, not the words: status, finish, kinds of blocks, tool calls with their arguments' names, the model, and
    tokens beyond a tolerance. Calls that are new or have vanished, and other versions of client and SDK, are listed.
    The tape is never touched.

    What CMD prints goes to stderr. Exit code: 1 says that the tape has drifted, 0 that it has not. Of a CMD that failed
    the calls that it made are compared; where none of them has drifted, it is CMD's own code, or 2 if that is 1. Where
    nothing was compared it is that, too, or 2 if CMD's is 0; so it is where a model did not answer (429, 503, no
    connection) what the tape has an answer to.
    """
    options = Asked(tape, **asked)  # type: ignore[arg-type]
    argv = program_of(ctx)
    if options.against is not None:
        if argv:
            raise UsageError("--against compares with a tape, and a command is run for one: give one of them")
        ctx.exit(_compare(options, options.against, argv))
    if not argv:
        raise UsageError(
            f"verify needs the program whose tape this is: wiretape verify {shlex.quote(str(tape))} -- CMD\n"
            "  or a later recording of it: --against LIVE"
        )
    ctx.exit(_run(options, (hosts, everything, upstream, keep_unset), argv))


def _run(asked: Asked, how: tuple[tuple[str, ...], bool, str | None, bool], argv: Sequence[str]) -> int:
    from wiretape.cli.run.record import Options, check_run, need_mitmproxy

    need_mitmproxy()
    _read(asked.tape)  # what is no tape is said before anything runs
    if asked.keep is not None and asked.keep.exists():
        raise UsageError(f"{asked.keep} exists already, and nothing was run")
    hosts, everything, upstream, keep_unset = how
    with TemporaryDirectory(prefix="wiretape-") as scratch:
        live = asked.keep or Path(scratch, "live.tape")
        options = Options(
            tape=live,
            hosts=hosts,
            everything=everything,
            upstream=upstream,
            port=0,
            keep_unset=keep_unset,
            note=f"recorded to verify {asked.tape.name}",
            provenance=None,
            append=False,
            force=False,
            stats=False,
            verbose=asked.verbose,
        )
        check_run(options, argv)
        code, incomplete = _record(options, argv)
        compared = _compare(asked, live, argv, code)
        return _own(code) or INCOMPLETE if incomplete else compared  # what was not recorded looks like drift


def _record(options: Options, argv: Sequence[str]) -> tuple[int, bool]:
    """The program's exit code, and whether the recording is incomplete."""
    from wiretape.adapters.launch.config_discovery import discover_config
    from wiretape.adapters.mitm.recording import Recording
    from wiretape.adapters.settings import load_settings, redactor_of
    from wiretape.cli.run.record import held_signals, recorder_of, run_recorded
    from wiretape.cli.run.record_report import LiveReport

    around = discover_config(argv, os.environ, Path.cwd())
    settings = load_settings(Path.cwd())
    report = LiveReport(options.tape, argv, counted=False)
    click.echo("wiretape verifying: the program runs LIVE, and asks real models", err=True)
    recorder = recorder_of(options, redactor_of(settings), report)
    try:
        recording = Recording(
            recorder,
            os.environ,
            report.trouble,
            hosts=[*options.hosts, *settings.hosts, *around.hosts],
            everything=options.everything,
            upstream=options.upstream,
            verbose=options.verbose,
            keep_unset=options.keep_unset,
        )
        code = run_recorded(recording, argv, report, around, options, apart=True)
    finally:
        with held_signals():
            summary = recorder.close()
    report.troubles_again(summary)
    return code, summary.incomplete


def _read(path: Path) -> Tape:
    tape = read_whole(path)
    for warning in tape.warnings:
        click.echo(f"wiretape: {warning}", err=True)
    return tape


def _compare(asked: Asked, live: Path, argv: Sequence[str], code: int = 0) -> int:
    """`code`: how the program ended. What it did until then is compared."""
    from wiretape.adapters.settings import load_settings
    from wiretape.compare.difference import Tier
    from wiretape.matching.values import ReplayOptions
    from wiretape.matching.verify.freshness import freshness
    from wiretape.model.wording import plural

    mask = tuple(load_settings(Path.cwd()).mask)
    options = ReplayOptions(Tier[asked.tier.upper()], mask=mask)
    found = freshness(_read(asked.tape), _read(live), options, asked.tolerance)
    own = _own(code)
    if not asked.against and not any(call.live is not None for call in found.calls):
        return _nothing_compared(argv, code, own)
    found = found.cut_short() if code else found
    if not asked.against:
        kept = str(asked.keep) if asked.keep else None
        found = found.model_copy(update={"live": kept or "a live run", "kept": kept})
    _print(found, asked, argv)
    if code:
        missing = found.not_reached
        rest = f", and came to {plural(missing, 'call')} of the tape no more" if missing else ""
        click.echo(f"wiretape {Path(argv[0]).name} exited with {code}{rest}", err=True)
    return DRIFTED if found.drifted else own or (UNDECIDED if found.unanswered else 0)


def _own(code: int) -> int:
    """The program's exit code as that of verify: 1 says that the tape has drifted."""
    return UNDECIDED if code == DRIFTED else code


def _nothing_compared(argv: Sequence[str], code: int, own: int) -> int:
    if code:
        why = f" (exit code {own}: {DRIFTED} is for a tape that has drifted)" if code != own else ""
        click.echo(f"wiretape {Path(argv[0]).name} exited with {code}: nothing was compared{why}", err=True)
        return own
    click.echo("wiretape: NO MODEL CALL WAS SEEN: nothing was compared", err=True)
    click.echo(f"  what is known of the program: wiretape doctor -- {typed(argv)}", err=True)
    return UNDECIDED


def _print(found: Freshness, asked: Asked, argv: Sequence[str]) -> None:
    if asked.as_json:
        from wiretape.cli.tapes import print_json

        print_json(found.model_dump(mode="json"))
        return
    from wiretape.views.replay.freshness import freshness_view
    from wiretape.views.terminal import make_console

    program = typed(argv) if argv else "CMD"
    tape = shlex.quote(str(asked.tape))
    how = f"-o {tape} --force" if found.answered_otherwise else f"--update {tape}"
    mend = f"wiretape record {how} -- {program}"
    make_console().print(freshness_view(found, mend, full=asked.verbose), crop=False)
