"""`wiretape rerun`: play a tape's scheduler without the agent's program, against the tape or a live model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from wiretape.cli.shared_options import force_option, json_option, live_model_options, new_tape_option
from wiretape.cli.tapes import note_incomplete, partial_option
from wiretape.errors import UsageError

if TYPE_CHECKING:
    from wiretape.rerun.values import CallOutcome


@click.command("rerun")
@click.argument("tape", metavar="TAPE")
@live_model_options
@click.option("--live", is_flag=True, help="Send the requests live, to the recorded endpoint and model.")
@new_tape_option
@force_option()
@json_option
@partial_option
@click.pass_context
def command(ctx: click.Context, /, tape: str, as_json: bool, **given: Any) -> None:
    """Build each request of TAPE from the call before it, without the agent's program, and compare.

    The next request follows from each answer and the recorded tool results, as the wire format defines it, and is
    compared with the recorded one. What no format defines (the user's words, a reminder) comes from the tape, marked.

    With --model, --base-url or --live the requests go to a live endpoint, and the tools are answered from the tape by
    their arguments: the table shows where the runs part.

    Exit code: 0 if all requests are equal; 1 if not, or if content is missing from the tape.
    """
    from wiretape.app.rerun import RerunOptions, check_rerun, rerun
    from wiretape.cli.tapes import open_tape, print_json
    from wiretape.rerun.report import rerun_call
    from wiretape.views.replay.rerun import RerunView, rerun_line
    from wiretape.views.terminal import make_console

    options = RerunOptions(**given)
    check_rerun(tape, options)
    opened = open_tape(tape)
    if not opened.run.steps:
        raise UsageError(f"{opened.name} has no model calls to rerun; what it has: wiretape show {opened.name}")
    console = make_console(stderr=True)

    def show(row: CallOutcome) -> None:
        console.print(rerun_line(rerun_call(row), console.width), soft_wrap=True)

    report, complete = rerun(opened.name, opened.tape, options, show)
    if not complete and options.output is not None:
        note_incomplete(options.output)
    if as_json:
        print_json(report.model_dump(mode="json"))
    else:
        make_console().print(RerunView(report))
    ctx.exit(0 if report.equal and not report.gaps else 1)
