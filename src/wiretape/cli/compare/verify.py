"""`wiretape verify`: run a program live, and say whether its tape has drifted."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from wiretape.adapters.output import say, typed
from wiretape.cli.programs import WithProgram, program_of
from wiretape.cli.shared_options import json_option, recording_options, tier_option, verbose_option
from wiretape.cli.tapes import partial_option, partial_wanted, read_whole
from wiretape.errors import EXIT_INCOMPLETE, UsageError
from wiretape.model.wording import plural

if TYPE_CHECKING:
    from wiretape.app.record import RecordOptions
    from wiretape.matching.verify.freshness import Freshness

DRIFTED = 1
UNDECIDED = 2


@dataclass(frozen=True, slots=True)
class _Command:
    """The options of the command, besides those of a recording."""

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
@tier_option()
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    default=0.25,
    help="Allow a call's tokens to differ by this fraction (default: 0.25).",
)
@recording_options
@json_option
@verbose_option
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
    **given: Any,
) -> None:
    """Run CMD live, and compare its requests and answers with TAPE.

    Real models are called. Requests are compared as in a replay: clocks and ids are ignored. Of an answer, the shape is
    compared, and its words are not: status, finish reason, kinds of blocks, names of tool calls and their arguments,
    model, and tokens within a tolerance. New and missing calls, and changed versions of client and SDK, are listed.
    TAPE is never changed.

    CMD's output goes to stderr. Exit code: 1 if the tape has drifted, else 0. If CMD failed, the calls that it made are
    compared; if none has drifted, the exit code is CMD's own, or 2 if that is 1. It is also CMD's own, or 2 if that is
    0, if nothing was compared, or if a model did not answer (429, 503, no connection) where the tape has an answer.
    """
    options, argv = _Command(tape, **given), program_of(ctx)
    if options.against is not None:
        if argv:
            raise UsageError("--against compares with a tape, and CMD makes a new one: use one of them")
        ctx.exit(_compare(options, options.against, argv))
    if not argv:
        raise UsageError(
            f"verify needs the program of the tape: wiretape verify {shlex.quote(str(tape))} -- CMD\n"
            "  or a later recording of it: --against LIVE"
        )
    from wiretape.app.record import RecordOptions, need_mitmproxy

    need_mitmproxy()
    read_whole(tape)
    if options.keep is not None and options.keep.exists():
        raise UsageError(f"{options.keep} exists already, and nothing was run")
    with TemporaryDirectory(prefix="wiretape-") as scratch:
        recorded = RecordOptions(
            options.keep or Path(scratch, "live.tape"),
            hosts=hosts,
            everything=everything,
            upstream=upstream,
            keep_unset=keep_unset,
            note=f"recorded to verify {tape.name}",
            verbose=options.verbose,
        )
        ctx.exit(_record_and_compare(options, recorded, argv))


def _record_and_compare(options: _Command, recorded: RecordOptions, argv: Sequence[str]) -> int:
    from wiretape.app.verify import record_again
    from wiretape.cli.record_report import LiveReport

    report = LiveReport(recorded.tape, argv, counted=False, verbose=options.verbose)
    result = record_again(recorded, argv, report)
    report.troubles_again(result.summary)
    compared = _compare(options, recorded.tape, argv, result.code)
    if result.summary.incomplete:  # what was not recorded looks like drift
        return _own(result.code) or EXIT_INCOMPLETE
    return compared


def _compare(options: _Command, live: Path, argv: Sequence[str], code: int = 0) -> int:
    """Compare what the program did until it ended with `code`. Return the exit code."""
    from wiretape.app.verify import VerifyOptions, compare_recordings

    match = VerifyOptions(options.tape, options.tier, options.tolerance, partial_wanted())
    found = compare_recordings(match, live)
    own = _own(code)
    if not options.against and not any(call.live is not None for call in found.calls):
        return _nothing_compared(argv, code, own)
    found = found.cut_short() if code else found
    if not options.against:
        kept = str(options.keep) if options.keep else None
        found = found.model_copy(update={"live": kept or "a live run", "kept": kept})
    _print(found, options, argv)
    if code:
        missing = found.not_reached
        rest = f", and did not reach {plural(missing, 'call')} of the tape" if missing else ""
        say(f"{Path(argv[0]).name} exited with {code}{rest}")
    return DRIFTED if found.drifted else own or (UNDECIDED if found.unanswered else 0)


def _own(code: int) -> int:
    """Return the program's exit code, or 2 instead of 1, which means that the tape has drifted."""
    return UNDECIDED if code == DRIFTED else code


def _nothing_compared(argv: Sequence[str], code: int, own: int) -> int:
    if code:
        why = f" (exit code {own}: {DRIFTED} means that the tape has drifted)" if code != own else ""
        say(f"{Path(argv[0]).name} exited with {code}: nothing was compared{why}")
        return own
    say(f"NO MODEL CALL WAS SEEN: nothing was compared\n  what to check: wiretape doctor -- {typed(argv)}")
    return UNDECIDED


def _print(found: Freshness, options: _Command, argv: Sequence[str]) -> None:
    if options.as_json:
        from wiretape.cli.tapes import print_json

        print_json(found.model_dump(mode="json"))
        return
    from wiretape.views.replay.freshness import freshness_view
    from wiretape.views.terminal import make_console

    program = typed(argv) if argv else "CMD"
    tape = shlex.quote(str(options.tape))
    how = f"-o {tape} --force" if found.answered_otherwise else f"--update {tape}"
    mend = f"wiretape record {how} -- {program}"
    make_console().print(freshness_view(found, mend, full=options.verbose), crop=False)
