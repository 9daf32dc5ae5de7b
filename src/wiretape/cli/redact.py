"""`wiretape redact`: remove secrets from a tape that is already written."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from wiretape.cli.damaged import partial_option, partial_wanted
from wiretape.cli.editing import OUT_IS_OUTPUT


@click.command("redact", context_settings=OUT_IS_OUTPUT)
@click.argument("tape", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", "out", type=click.Path(path_type=Path), help="Write a new tape instead of changing TAPE."
)
@click.option(
    "--pattern", "patterns", multiple=True, metavar="RE", help="Replace what this regular expression matches."
)
@click.option("--force", is_flag=True, help="Replace the file at --output.")
@partial_option
def command(tape: Path, out: Path | None, patterns: tuple[str, ...], force: bool) -> None:
    """Remove secrets from a tape that is already written.

    Replaces credentials, whatever looks like a key, and what matches `redact` of [tool.wiretape] in pyproject.toml or
    a --pattern (if that has a group, only what the group matches). TAPE is changed in place, all or nothing.
    """
    from wiretape.adapters.settings import load_settings
    from wiretape.cli.editing import refuse_existing, warn
    from wiretape.tape.edit import redact_tape
    from wiretape.tape.redact import Redactor

    if out is not None:
        refuse_existing(out, force)
    redactor = Redactor([*load_settings(Path.cwd()).redact, *patterns])
    edited = redact_tape(tape, out or tape, redactor, partial_wanted())
    warn(edited)
    for kind, count in sorted(edited.redacted.items()):
        click.echo(f"{count:>6}  {kind}")
    where = out or tape
    if edited.redacted:
        print(f"wiretape: replaced {sum(edited.redacted.values())} values in {where}", file=sys.stderr)
    elif out is None:
        print(f"wiretape: no secret found; {tape} is as it was", file=sys.stderr)
    else:
        print(f"wiretape: no secret found; {where} is a copy", file=sys.stderr)
