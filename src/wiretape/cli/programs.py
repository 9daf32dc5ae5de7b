"""Helpers of commands that run a program: arguments after `--`, and notices before the program starts."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from wiretape.adapters.output import output, say
from wiretape.cli.streams import ignore_stdout

if TYPE_CHECKING:
    from wiretape.adapters.launch.preparing import PreparedProgram

_CMD = "wiretape.cmd"


class WithProgram(click.Command):
    """A command whose arguments after `--` are a program's command line."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            ctx.meta[_CMD] = args[at + 1 :]
            args = args[:at]
        return super().parse_args(ctx, args)


def program_of(ctx: click.Context) -> list[str]:
    """Return the program and its arguments, or an empty list."""
    program: list[str] = ctx.meta.get(_CMD, [])
    return program


def say_settings(program: PreparedProgram) -> None:
    """Print the preset, each setting and each note on stderr."""
    from wiretape.views.printable import one_line

    say(f"runs {program.program.preset.title}; for this run only it sets")
    for setting in program.settings:
        [shown] = output().command([str(setting)])
        click.echo(f"  {one_line(shown)}  ({one_line(setting.why)})", err=True)
    for note in program.notes:
        click.echo(f"  note: {one_line(output().text(note))}", err=True)


def say_env_leaks(argv: Sequence[str], consequence: str) -> None:
    """Warn before a program runs that some of its requests will bypass wiretape."""
    from wiretape.adapters.launch.env_leaks import env_leaks

    for leak in env_leaks(argv, os.environ):
        say(f"{leak}, {consequence}")


def print_exports(variables: Mapping[str, str]) -> None:
    """Print shell commands that route another shell's programs through wiretape."""
    ignore_stdout()
    for name, value in variables.items():
        click.echo(f"export {name}={shlex.quote(value)}")
    sys.stdout.flush()
