"""What `-v` says of a program's environment: each thing that is set for its run only, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from wiretape.adapters.preparing import Prepared
    from wiretape.adapters.surroundings import Surroundings


def say_settings(variables: Mapping[str, str], around: Surroundings, prepared: Prepared) -> None:
    """On stderr: the preset, then a line for each setting, then what to know of it."""
    from wiretape.adapters.preparing import explained
    from wiretape.views.printable import one_line

    preset = around.program.preset
    click.echo(f"wiretape: runs {preset.title}; for this run only it sets", err=True)
    for setting in (*explained(variables, around), *prepared.settings):
        click.echo(f"  {one_line(str(setting))}  ({one_line(setting.why)})", err=True)
    for note in prepared.notes:
        click.echo(f"  note: {one_line(note)}", err=True)
