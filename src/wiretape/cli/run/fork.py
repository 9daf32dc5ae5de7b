"""`wiretape fork`: change one thing in a recorded run, and continue live from there, on a new tape."""

from __future__ import annotations

from typing import Any

import click

from wiretape.cli.forking import ForkCommand, fork_options, make_fork
from wiretape.cli.programs import program_of


@click.command("fork", cls=ForkCommand)
@click.argument("tape", metavar="TAPE")
@click.argument("call", type=click.IntRange(min=1), metavar="CALL")
@fork_options
@click.pass_context
def command(ctx: click.Context, /, tape: str, call: int, **given: Any) -> None:
    """Go back to a CALL of TAPE, change one thing, and continue from there LIVE, on a new tape.

    The new tape shares the calls before; TAPE itself is never changed. --say, --answer and --edit answer change the
    content of the model's answer, --body and --edit body its bytes, --result a tool result, --prompt, --set and --edit
    request the request. Without any of them the call is sent again. Tools are answered from the tape by their
    arguments.

    With CMD behind `--` the program itself continues: its calls up to the changed answer are played from the tape, the
    rest is recorded live. Exit code: CMD's own; else 1 if a tool call had no result.
    """
    from wiretape.cli.tapes import open_tape

    _, code = make_fork(open_tape(tape), call, program_of(ctx), **given)
    ctx.exit(code)
