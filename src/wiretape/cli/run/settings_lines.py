"""What is said of a program before it runs: with `-v` each thing that is set for it, and what wiretape cannot reach."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from wiretape.adapters.output import output, say

if TYPE_CHECKING:
    from wiretape.adapters.launch.config_discovery import DiscoveredConfig
    from wiretape.adapters.launch.preparing import PreparedProgram


def say_settings(variables: Mapping[str, str], around: DiscoveredConfig, prepared: PreparedProgram) -> None:
    """On stderr: the preset, then a line for each setting, then what to know of it."""
    from wiretape.adapters.launch.preparing import explained
    from wiretape.views.printable import one_line

    preset = around.program.preset
    click.echo(f"wiretape: runs {preset.title}; for this run only it sets", err=True)
    for setting in (*explained(variables, around), *prepared.settings):
        [shown] = output().command([str(setting)])
        click.echo(f"  {one_line(shown)}  ({one_line(setting.why)})", err=True)
    for note in prepared.notes:
        click.echo(f"  note: {one_line(output().text(note))}", err=True)


def say_env_leaks(argv: Sequence[str], consequence: str) -> None:
    """Warn before a program runs that some of its requests will bypass wiretape."""
    from wiretape.adapters.launch.env_leaks import env_leaks

    for leak in env_leaks(argv, os.environ):
        say(f"{leak}, {consequence}")
