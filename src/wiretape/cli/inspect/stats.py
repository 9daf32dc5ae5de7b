"""`wiretape stats`: the analysis of a tape, turn by turn."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from wiretape.cli.shared_options import json_option
from wiretape.cli.tapes import partial_option
from wiretape.errors import UsageError

if TYPE_CHECKING:
    from wiretape.analyze.totals import Totals

_TABLES = ("tape", "model", "agent", "tool", "day")
_UNREADABLE = 2


@click.command("stats")
@click.argument("tapes", metavar="TAPE...", nargs=-1, required=True)
@click.option(
    "--by",
    multiple=True,
    type=click.Choice(_TABLES),
    help="Add up, and show only this table of the totals (may be repeated).",
)
@click.option("--each", is_flag=True, help="Show every tape turn by turn, not their totals.")
@json_option
@partial_option
@click.pass_context
def command(ctx: click.Context, tapes: tuple[str, ...], by: tuple[str, ...], each: bool, as_json: bool) -> None:
    """Count calls, tokens and cache hits for each user turn of a TAPE.

    Each model call has a row: its agent, its tokens, the tools that it called, and why it was made. The calls of a
    subagent are under the call that started it. A number that the provider does not report is "?", never 0.

    Several tapes, or a directory of tapes, are summed by tape, model, agent, tool and day. A tape that cannot be read
    is named and left out, and the exit code is 2.
    """
    from wiretape.cli.tapes import is_call, open_tape, print_json

    named = [tape for tape in tapes if not is_call(tape)]
    if named and len(named) < len(tapes):
        call = next(tape for tape in tapes if is_call(tape))
        meant = f"wiretape show {shlex.quote(named[0])} {call}"
        raise UsageError(f"stats counts whole tapes, and {call} is a call; did you mean: {meant}")
    if each and by:
        raise UsageError("--each shows every tape by itself, and --by adds them up: ask for one of the two")
    from wiretape.cli.many_tapes import expand

    several = expand(tapes)
    if by or (not each and (len(several) > 1 or several != list(tapes[:1]))):
        ctx.exit(_show_totals(several, by or _TABLES, as_json))
    opened = [open_tape(tape) for tape in (tapes if len(several) == 1 else several)]
    reports = [one.tape.stats() for one in opened]
    if as_json:
        documents = [report.model_dump(mode="json") for report in reports]
        pairs = [{"tape": one.name, "stats": document} for one, document in zip(opened, documents, strict=True)]
        print_json(documents[0] if len(documents) == 1 else pairs)
        return
    from rich.text import Text

    from wiretape.views.printable import one_line
    from wiretape.views.stats.analysis import stats_view
    from wiretape.views.terminal import make_console

    console = make_console()
    for number, (one, report) in enumerate(zip(opened, reports, strict=True)):
        if len(reports) > 1:
            console.print(Text(("\n" if number else "") + f"== {one_line(one.name)}\n", style="bold"))
        console.print(stats_view(report))


def _show_totals(tapes: Sequence[str], by: Sequence[str], as_json: bool) -> int:
    """Print the totals of many tapes, one in memory at a time. The exit code is 2 if a tape could not be read."""
    from wiretape.adapters.prices import price_list
    from wiretape.analyze.totals import Totals
    from wiretape.cli.many_tapes import one_by_one

    totals = Totals()
    read = sum(one_by_one(tapes, lambda name: _add(totals, name)))
    prices = price_list()
    report = totals.report(prices.name if prices is not None else None)
    if as_json:
        from wiretape.cli.tapes import print_json

        tables = {f"by_{kind}" for kind in _TABLES} - {f"by_{kind}" for kind in by}
        print_json(report.model_dump(mode="json", exclude=tables))
    else:
        from wiretape.views.stats.totals import totals_view
        from wiretape.views.terminal import make_console

        make_console().print(totals_view(report, by))
    return 0 if read == len(tapes) else _UNREADABLE


def _add(totals: Totals, name: str) -> bool:
    from wiretape.adapters.prices import price_list
    from wiretape.cli.many_tapes import UnopenedTape, opened, say_unreadable, say_warnings

    tape = opened(name)
    if isinstance(tape, UnopenedTape):
        say_unreadable(tape)
        totals.could_not_read(name, tape.problem)
        return False
    say_warnings(tape)
    started = tape.tape.header.started
    totals.add(name, tape.run, started, price_list(started))
    return True
