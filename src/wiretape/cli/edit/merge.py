"""`wiretape merge`: write several tapes as one."""

from __future__ import annotations

from pathlib import Path

import click

from wiretape._version import __version__
from wiretape.adapters.output import say
from wiretape.cli.editing import OUT_IS_OUTPUT, refuse_existing, warn
from wiretape.cli.shared_options import force_option
from wiretape.cli.tapes import partial_option, read_whole
from wiretape.errors import UsageError


@click.command("merge", context_settings=OUT_IS_OUTPUT)
@click.argument("tapes", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "--output", "out", required=True, type=click.Path(path_type=Path), help="The tape to write.")
@force_option()
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
    say(f"{edited.exchanges} exchanges of {len(read)} tapes written to {out}")
    if edited.shared:
        say(f"{edited.shared} exchanges were on several tapes, and are kept once")
