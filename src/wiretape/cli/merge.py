"""`wiretape merge`: write several tapes as one."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from wiretape import __version__
from wiretape.cli.editing import OUT_IS_OUTPUT, refuse_existing, warn
from wiretape.errors import UsageError


@click.command("merge", context_settings=OUT_IS_OUTPUT)
@click.argument("tapes", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "--output", "out", required=True, type=click.Path(path_type=Path), help="The tape to write.")
@click.option("--force", is_flag=True, help="Replace the file at --output.")
def command(tapes: tuple[Path, ...], out: Path, force: bool) -> None:
    """Write several tapes as one.

    Exchanges stand in the order in which they started by the clock, and are numbered anew from 1.
    """
    from wiretape.adapters.settings import load_settings, redactor_of
    from wiretape.tape.edit import merge_tapes
    from wiretape.tape.reader import read_tape

    if len(tapes) < 2:
        raise UsageError("name two tapes or more to merge")
    refuse_existing(out, force)
    read = [read_tape(path) for path in tapes]
    edited = merge_tapes(read, out, f"wiretape {__version__}", redactor_of(load_settings(Path.cwd())))
    warn(edited)
    print(f"wiretape: {edited.exchanges} exchanges of {len(read)} tapes written to {out}", file=sys.stderr)
