"""`wiretape ls`: the tapes under a directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from wiretape.cli.many_tapes import problem_of, tapes_under
from wiretape.cli.shared_options import json_option
from wiretape.errors import UsageError, WiretapeError

if TYPE_CHECKING:
    from wiretape.views.show.tape_list import TapeEntry

UNREADABLE = 2


@click.command("ls")
@click.argument("directory", metavar="[DIR]", required=False)
@json_option
@click.pass_context
def command(ctx: click.Context, directory: str | None, as_json: bool) -> None:
    """List the tapes under DIR (default: captures if it exists, else the current directory).

    A tape that cannot be read is listed with its problem, and the exit code is 2. The exit code is 1 if a tape is
    damaged and can be read in part.
    """
    start = Path(directory) if directory is not None else default_directory()
    if not start.exists():
        raise UsageError(f"{start}: no such directory")
    entries = [entry(path) for path in ([start] if start.is_file() else tapes_under(start))]
    if as_json:
        from wiretape.cli.tapes import print_json

        print_json([one.model_dump(mode="json") for one in entries])
    elif not entries:
        click.echo(f"no tapes under {start}; to make one: wiretape record -o captures/NAME.tape -- CMD", err=True)
    else:
        from wiretape.views.show.tape_list import list_view
        from wiretape.views.terminal import make_console

        make_console().print(list_view(entries), crop=False)
    ctx.exit(UNREADABLE if any(one.problem for one in entries) else 0)


def default_directory() -> Path:
    """Return `captures`, where recordings are written, if it exists."""
    captures = Path("captures")
    return captures if captures.is_dir() else Path()


def entry(path: Path) -> TapeEntry:
    """Return the summary of a tape, or its problem."""
    from wiretape.cli.tapes import link, read
    from wiretape.views.show.tape_list import TapeEntry

    name, size = str(path), 0
    try:
        size = path.stat().st_size
        opened = link(name, read(name, show=True))
    except (WiretapeError, OSError) as error:
        return TapeEntry(path=name, bytes=size, problem=problem_of(name, error))
    header, run = opened.tape.header, opened.run
    return TapeEntry(
        path=name,
        bytes=size,
        started=header.started.isoformat(),
        calls=len(run.steps),
        turns=len(run.turns),
        exchanges=len(opened.tape.exchanges),
        models=sorted({step.call.model for step in run.steps if step.call.model}),
        note=header.note,
        client=header.client,
        warnings=list(opened.tape.warnings),
    )
