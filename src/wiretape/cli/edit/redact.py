"""`wiretape redact`: remove secrets from a tape that is already written."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wiretape.adapters.output import say
from wiretape.cli.editing import OUT_IS_OUTPUT
from wiretape.cli.shared_options import force_option, tool_arguments_option
from wiretape.cli.tapes import partial_option, partial_wanted, read_whole, say_warning

if TYPE_CHECKING:
    from wiretape.tape.redaction import Redactor


@click.command("redact", context_settings=OUT_IS_OUTPUT)
@click.argument("tape", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", "out", type=click.Path(path_type=Path), help="Write a new tape instead of changing TAPE."
)
@click.option(
    "--pattern", "patterns", multiple=True, metavar="RE", help="Replace what this regular expression matches."
)
@tool_arguments_option("arguments")
@click.option(
    "--check", "only_check", is_flag=True, help="Name the places, write nothing; exit with 1 if there are any."
)
@force_option()
@partial_option
@click.pass_context
def command(
    ctx: click.Context,
    tape: Path,
    out: Path | None,
    patterns: tuple[str, ...],
    arguments: bool,
    only_check: bool,
    force: bool,
) -> None:
    """Remove secrets from a tape that is already written.

    Replaces credentials, whatever looks like a key, and what matches `redact` of [tool.wiretape] in pyproject.toml or
    a --pattern (if that has a group, only what the group matches). TAPE is changed in place, all or nothing.
    """
    from wiretape.adapters.settings import load_settings, redactor_of
    from wiretape.cli.editing import refuse_existing, warn
    from wiretape.tape.editing.edit import redact_tape

    redactor = redactor_of(load_settings(Path.cwd()), patterns, arguments)
    if only_check:
        if out is not None:
            raise click.UsageError("--check writes nothing: omit --output")
        ctx.exit(_check(tape, redactor))
    if out is not None:
        refuse_existing(out, force)
    edited = redact_tape(tape, out or tape, redactor, partial_wanted())
    warn(edited)
    for kind, count in sorted(edited.redacted.items()):
        click.echo(f"{count:>6}  {kind}")
    where = out or tape
    if edited.redacted:
        say(f"replaced {sum(edited.redacted.values())} values in {where}")
    elif out is None:
        say(f"no secret found; {tape} is as it was")
    else:
        say(f"no secret found; {where} is a copy")


def _check(tape: Path, redactor: Redactor) -> int:
    """Print the places at which something would be replaced, without the values; 1 if there are any."""
    from wiretape.tape.editing.edit import learn_all
    from wiretape.tape.editing.secrets import secrets_in

    read = read_whole(tape)
    for warning in read.warnings:
        say_warning(warning)
    if not learn_all(read.exchanges, redactor, tape):
        say(f"no secret found in {tape}")
        return 0
    places = list(secrets_in(read.exchanges, redactor, words=True))
    for place in places:
        click.echo(f"x{place.exchange}  {place.path}  {place.kind}")
    print(
        f"wiretape: {tape} holds secrets in {len(places)} place{'s'[: len(places) != 1]}\n"
        f"  to replace them: wiretape redact {tape}",
        file=sys.stderr,
    )
    return 1
