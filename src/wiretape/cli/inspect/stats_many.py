"""The part of `wiretape stats` that adds up many tapes: one of them is in memory at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wiretape.analyze.totals import Totals

UNREADABLE = 2


def show_totals(tapes: Sequence[str], by: Sequence[str], as_json: bool) -> int:
    """Print the totals; the exit code is 2 if a tape could not be read."""
    from wiretape.adapters.prices import price_list
    from wiretape.analyze.totals import Totals
    from wiretape.cli.many_tapes import one_by_one

    totals = Totals()
    read = sum(one_by_one(tapes, lambda name: _add(totals, name)))
    prices = price_list()
    report = totals.report(prices.name if prices is not None else None)
    if as_json:
        from wiretape.cli.tapes import print_json

        tables = {f"by_{kind}" for kind in ALL_TABLES} - {f"by_{kind}" for kind in by}
        print_json(report.model_dump(mode="json", exclude=tables))
    else:
        from wiretape.views.stats.totals import totals_view
        from wiretape.views.terminal import make_console

        make_console().print(totals_view(report, by))
    return 0 if read == len(tapes) else UNREADABLE


ALL_TABLES = ("tape", "model", "agent", "tool", "day")


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
