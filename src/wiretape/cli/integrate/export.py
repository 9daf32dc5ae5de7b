"""`wiretape export`: write a tape for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from wiretape.adapters.output import say
from wiretape.cli.editing import OUT_IS_OUTPUT
from wiretape.cli.integrate.format_choice import FormatChoice
from wiretape.cli.shared_options import force_option
from wiretape.cli.tapes import partial_option, say_warning
from wiretape.errors import TapeUnwritable

if TYPE_CHECKING:
    from collections.abc import Iterable


FORMATS = ("har",)  # as in adapters.exporters.exporting; copied for start-up time


def plugin_formats() -> Iterable[str]:
    from wiretape.adapters.exporters.exporting import plugins

    return plugins()


@click.command("export", context_settings=OUT_IS_OUTPUT)
@click.argument("tape")
@click.option(
    "--format",
    "form",
    type=FormatChoice(FORMATS, plugin_formats),
    default="har",
    help="Format of the file: har, or the name of a plug-in [har].",
)
@click.option(
    "--har",
    is_flag=True,
    expose_value=False,  # HAR is the default
    help="Write HAR 1.2, for a browser's developer tools or mitmproxy (the default).",
)
@click.option("-o", "--output", "out", required=True, metavar="FILE", help="The file to write; - is standard output.")
@force_option()
@partial_option
def command(tape: str, form: str, out: str, force: bool) -> None:
    """Write a tape in the format of another tool.

    The tape's secrets are already replaced. TAPE may be - for standard input.
    """
    from wiretape.adapters.exporters.exporting import exporter
    from wiretape.cli.editing import refuse_existing
    from wiretape.cli.tapes import read, write_bytes
    from wiretape.model.wording import plural

    if out != "-":
        refuse_existing(Path(out), force)
    whole = read(tape)
    for warning in whole.warnings:
        say_warning(warning)
    pieces = exporter(form).export(whole)
    if out == "-":
        for piece in pieces:
            write_bytes(piece)
        return
    _write(Path(out), pieces)
    say(f"{plural(len(whole.exchanges), 'exchange')} written to {out}")


def _write(out: Path, pieces: Iterable[bytes]) -> None:
    """Write the file atomically."""
    from wiretape.tape.atomic import rewrite

    try:
        rewrite(out, pieces)
    except OSError as error:
        raise TapeUnwritable(f"{out}: cannot be written: {error.strerror or error}") from None
