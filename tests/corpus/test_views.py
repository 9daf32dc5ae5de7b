"""Recorded traffic of other projects on every screen: nothing crashes, overflows, or prints control characters."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from tests.support.corpora import cassettes
from tests.support.views import header, shown

from wiretape.analyze.stats import stats
from wiretape.analyze.why import why
from wiretape.model.http import Exchange
from wiretape.model.run import Run
from wiretape.runs.run import build_run
from wiretape.views.call_line import call_line
from wiretape.views.printable import json_text, visible
from wiretape.views.show.call import call_view
from wiretape.views.show.exchange import exchange_view
from wiretape.views.show.show_json import call_json, exchange_json, tape_json
from wiretape.views.show.tape import tape_view
from wiretape.views.stats.analysis import stats_view
from wiretape.wire.registry import decode


def screens(path: str, exchanges: list[Exchange], run: Run, width: int) -> str:
    screen = shown(stats_view(stats(run)), width) + shown(tape_view(path, header(), exchanges, run), width)
    for step in run.steps:
        screen += shown(call_view(step, run, why(step, run), full=width == 80), width)
        screen += shown(call_line(step.call, width), width)
    return screen + shown(exchange_view(exchanges[0], full=True), width)


@pytest.mark.parametrize(
    ("archive", "every"), [("pydantic+pydantic-ai", 60), ("charmbracelet+fantasy", 40), ("simonw+llm-anthropic", 10)]
)
def test_every_screen_fits_and_is_safe(archive: str, every: int) -> None:
    for path, exchanges in cassettes(archive, every=every):
        calls = decode(exchanges)
        decoded = {call.exchange for call in calls}
        run = build_run(calls, [x.number for x in exchanges if x.number not in decoded])
        for width in (50, 80):
            screen = screens(path, exchanges, run, width)
            assert visible(screen) == screen
            assert max(cell_len(line) for line in screen.split("\n")) <= width, path
        json_text(tape_json(path, header(), exchanges, run))
        for step in run.steps:
            json_text(call_json(step, run, "", full=True))
        for exchange in exchanges:
            json_text(exchange_json(exchange))
