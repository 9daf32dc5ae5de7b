"""Commands with a program behind `--`."""

from __future__ import annotations

import click

_CMD = "wiretape.cmd"


class WithProgram(click.Command):
    """Keeps apart what stands behind `--`: the program to run, whose options are its own."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            ctx.meta[_CMD] = args[at + 1 :]
            args = args[:at]
        return super().parse_args(ctx, args)


def program_of(ctx: click.Context) -> list[str]:
    """The program and its arguments; empty where none was given."""
    program: list[str] = ctx.meta.get(_CMD, [])
    return program
