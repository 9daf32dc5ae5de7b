"""`wiretape diff`: compares two runs."""

from __future__ import annotations

from pathlib import Path

import click

from wiretape.cli.shared_options import json_option
from wiretape.cli.tapes import partial_option

DIFFERENT = 1


@click.command("diff")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option("--all", "everything", is_flag=True, help="Show every difference, volatile values included.")
@click.option("--mask", multiple=True, metavar="RE", help="Ignore text that this regular expression matches.")
@json_option
@partial_option
@click.pass_context
def command(ctx: click.Context, a: str, b: str, everything: bool, mask: tuple[str, ...], as_json: bool) -> None:
    """Compare the runs on two tapes, A and B.

    Turns and calls are paired. Each turn shows its calls, tokens and cache hits in both runs, and the calls that
    only one run has. The first difference is shown with its place and both values. Ids, clocks, dates, and text that
    matches `mask` of [tool.wiretape] in pyproject.toml or --mask are ignored; tokens and times are only shown.
    Exits with 1 if the runs differ.
    """
    from wiretape.adapters.settings import load_settings
    from wiretape.cli.tapes import open_tape, print_json

    one, other = open_tape(a), open_tape(b)
    comparison = one.tape.diff(other.tape, (*load_settings(Path.cwd()).mask, *mask))
    if as_json:
        print_json({"a": one.name, "b": other.name, **comparison.model_dump(mode="json")})
    else:
        from wiretape.views.findings.diff import diff_view
        from wiretape.views.terminal import make_console

        make_console().print(diff_view(comparison, one.name, other.name, everything))
    ctx.exit(0 if comparison.same else DIFFERENT)
