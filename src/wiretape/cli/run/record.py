"""`wiretape record`: run a program behind the recording proxy, and report the recording."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wiretape.adapters.output import typed
from wiretape.cli.shared_options import (
    admission_options,
    force_option,
    note_option,
    port_option,
    recording_options,
    tag_option,
    tier_option,
    tool_arguments_option,
    verbose_option,
)
from wiretape.cli.tapes import partial_option, partial_wanted

if TYPE_CHECKING:
    from wiretape.app.call_tags import CallTags
    from wiretape.app.record import RecordOptions
    from wiretape.cli.record_report import LiveReport


class _OptionsBeforeProgram(click.Command):
    """Notices `-o` after the program: it belongs to the program then."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = list(args)
        rest = super().parse_args(ctx, args)
        cmd = ctx.params.get("cmd") or ()
        if cmd and ctx.params.get("tape") is None and "--" not in given[: len(given) - len(cmd)]:
            _notice_misplaced_output(cmd)
        return rest


def _notice_misplaced_output(cmd: Sequence[str]) -> None:
    at = next((i for i, word in enumerate(cmd) if word.partition("=")[0] in ("-o", "--output")), None)
    if at is None:
        return
    width = 1 if "=" in cmd[at] else 2
    right = typed(["wiretape", "record", *cmd[at : at + width], "--", *cmd[:at], *cmd[at + width :]])
    click.echo(
        f"wiretape: notice: {cmd[at]} comes after the command, so it is an option of {Path(cmd[0]).name}; "
        f"options of wiretape go before the command:\n  {right}",
        err=True,
    )


@click.command(cls=_OptionsBeforeProgram, context_settings={"allow_interspersed_args": False})
@click.option(
    "-o",
    "--output",
    "tape",
    metavar="TAPE",
    type=click.Path(path_type=Path),
    help="Write this tape (default: a new one in captures/, named after CMD).",
)
@recording_options
@port_option
@admission_options
@note_option
@click.option("--provenance", metavar="TEXT", help="Put the origin of the content into the tape's header.")
@click.option("--append", is_flag=True, help="Continue a tape that exists.")
@force_option()
@click.option(
    "--update",
    metavar="TAPE",
    type=click.Path(path_type=Path),
    help="Replay what this tape still answers, record the rest live, and replace what drifted.",
)
@tier_option("With --update: ")
@click.option("--stats/--no-stats", default=True, help="Print the table of `wiretape stats` at the end (default: on).")
@tool_arguments_option("redact_tool_arguments")
@tag_option
@verbose_option
@click.argument("cmd", nargs=-1, type=click.UNPROCESSED)
@partial_option
@click.pass_context
def command(
    ctx: click.Context, /, cmd: tuple[str, ...], tape: Path | None, port: int | None, stats: bool, **given: Any
) -> None:
    """Run CMD and record its requests to models.

    CMD reaches the recorder through environment variables: base URLs, proxies, and certificates to trust. Known model
    providers and this machine are recorded; connections to other hosts pass unchanged.

    Without CMD the recorder runs until Ctrl-C, and prints the variables for another shell.

    Exit code: CMD's own, if it is not 0; else 4 if the tape is incomplete (the disk was full, the tape was removed).
    """
    from wiretape.app.call_tags import CallTags
    from wiretape.app.record import RecordOptions, new_tape_path
    from wiretape.cli.record_report import LiveReport

    update: Path | None = given["update"]
    options = RecordOptions(tape=tape or update or new_tape_path(cmd), port=port or 0, **given)
    report = LiveReport(options.tape, cmd, counted=stats, verbose=options.verbose)
    tags = CallTags() if options.tag else None
    ctx.exit((_record if update is None else _update)(options, cmd, report, tags))


def _record(options: RecordOptions, argv: Sequence[str], report: LiveReport, tags: CallTags | None) -> int:
    from wiretape.app.record import record
    from wiretape.cli.record_report import print_recording

    if tags is not None:
        report.on_socket_calls = tags.answered_more
    return print_recording(record(options, argv, report, tags=tags), report)


def _update(options: RecordOptions, argv: Sequence[str], report: LiveReport, tags: CallTags | None) -> int:
    from wiretape.app.update import update
    from wiretape.cli.record_report import print_update

    return print_update(update(options, argv, report, on_kept=report.kept, tags=tags, partial=partial_wanted()), report)
