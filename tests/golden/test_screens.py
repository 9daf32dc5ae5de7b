"""Whole screens, to the character, at the widths people have. WIRETAPE_REWRITE_GOLDEN=1 writes them anew."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from tests.support.golden import check_screen
from tests.support.views import hard_report, header, shown, subagents_exchanges, subagents_report, subagents_run

from wiretape.analyze.report import CostSum
from wiretape.views.show.call import call_view
from wiretape.views.show.exchange import exchange_view
from wiretape.views.show.tape import tape_view
from wiretape.views.show.tape_list import TapeEntry, list_view
from wiretape.views.stats.analysis import stats_view

WIDTHS = pytest.mark.parametrize("width", [50, 80, 120])


def check(name: str, screen: str, width: int) -> None:
    assert all(cell_len(line) <= width for line in screen.splitlines())
    assert not any(line.endswith(" ") for line in screen.splitlines())
    check_screen(f"{name}-{width}", screen)


@WIDTHS
def test_stats_of_one_request_that_took_four_calls(width: int) -> None:
    check("stats-subagents", shown(stats_view(subagents_report()), width), width)


@WIDTHS
def test_stats_of_long_names_big_numbers_failures_and_side_calls(width: int) -> None:
    check("stats-hard", shown(stats_view(hard_report()), width), width)


@WIDTHS
def test_stats_with_costs(width: int) -> None:
    report = subagents_report()
    known, guessed = CostSum(usd=0.0001534, unknown_calls=2), CostSum(usd=0.0001534, estimated_calls=2)
    agents = [report.by_agent[0].model_copy(update={"cost": guessed}), report.by_agent[1]]
    steps = [one.model_copy(update={"cost": CostSum(usd=0.00007)}) for one in report.turns[0].steps]
    turn = report.turns[0].model_copy(update={"cost": known, "steps": steps})
    priced = {"cost": known, "prices": "a list", "turns": [turn], "by_agent": agents}
    check("stats-costs", shown(stats_view(report.model_copy(update=priced)), width), width)


@WIDTHS
def test_a_tape_at_a_glance(width: int) -> None:
    view = tape_view("captures/subagents.tape", header(), subagents_exchanges(), subagents_run())
    check("tape-subagents", shown(view, width), width)


@WIDTHS
def test_the_first_call_of_a_thread(width: int) -> None:
    run = subagents_run()
    check("call-1", shown(call_view(run.steps[0], run, "first call of the turn"), width), width)


@WIDTHS
def test_a_call_shows_what_it_adds(width: int) -> None:
    run = subagents_run()
    screen = shown(call_view(run.steps[3], run, "answers schedule_event from call 1"), width)
    assert "你是个人助理主管" not in screen
    check("call-4", screen, width)


@WIDTHS
def test_a_call_in_full(width: int) -> None:
    run = subagents_run()
    check("call-4-full", shown(call_view(run.steps[3], run, "answers schedule_event", full=True), width), width)


@WIDTHS
def test_an_exchange_that_is_no_model_call(width: int) -> None:
    check("exchange", shown(exchange_view(subagents_exchanges()[-1]), width), width)


@WIDTHS
def test_a_list_of_tapes(width: int) -> None:
    entries = [
        TapeEntry(
            path="captures/subagents.tape",
            bytes=6210,
            started="2026-02-28T07:05:30+00:00",
            calls=4,
            turns=1,
            exchanges=5,
            models=["deepseek-flash", "豆包·1.6·极致速度·250828"],
            note="个人助理主管 and its calendar agent",
        ),
        TapeEntry(path="captures/一次没有写完的录音/broken.tape", bytes=0, problem="empty: not a tape"),
    ]
    check("ls", shown(list_view(entries), width), width)
