"""`wiretape merge`: write several tapes as one."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from wiretape._version import __version__
from wiretape.cli.damaged import partial_option, read_whole
from wiretape.cli.editing import OUT_IS_OUTPUT, refuse_existing, warn
from wiretape.errors import UsageError


@click.command("merge", context_settings=OUT_IS_OUTPUT)
@click.argument("tapes", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "--output", "out", required=True, type=click.Path(path_type=Path), help="The tape to write.")
@click.option("--force", is_flag=True, help="Replace the file at --output.")
@partial_option
def command(tapes: tuple[Path, ...], out: Path, force: bool) -> None:
    """Write several tapes as one.

    Exchanges are in the order in which they started by the clock, and are numbered anew from 1. An exchange that
    several tapes have is kept once.
    """
    from wiretape.adapters.settings import load_settings, redactor_of
    from wiretape.tape.editing.edit import merge_tapes

    if len(tapes) < 2:
        raise UsageError("name two tapes or more to merge")
    refuse_existing(out, force)
    read = [read_whole(path) for path in tapes]
    edited = merge_tapes(read, out, f"wiretape {__version__}", redactor_of(load_settings(Path.cwd())))
    warn(edited)
    print(f"wiretape: {edited.exchanges} exchanges of {len(read)} tapes written to {out}", file=sys.stderr)
    if edited.shared:
        print(f"wiretape: {edited.shared} exchanges were on several tapes, and are kept once", file=sys.stderr)
