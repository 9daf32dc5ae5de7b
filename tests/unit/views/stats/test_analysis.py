"""The analysis on a terminal: honest about what is unknown, in bounds whatever texts it is given."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from tests.support.views import hard_report, shown, step, subagents_report

from wiretape.analyze.report import Finding, StatsReport, TurnReport, UsageSum
from wiretape.views.printable import visible
from wiretape.views.stats.analysis import stats_view

ANY = st.text(alphabet=st.characters(exclude_categories=()), max_size=100)
COUNT = st.none() | st.integers(0, 10**9)
USAGE = st.builds(UsageSum, input=COUNT, cached=COUNT, output=COUNT, reasoning=COUNT, unknown_calls=st.integers(0, 3))


def one_turn(*, user: str = "hi", answer: str | None = None, usage: UsageSum, **options: object) -> StatsReport:
    steps = [step(1, usage=usage, **options)]  # type: ignore[arg-type]
    turn = TurnReport(turn=1, user=user, answer=answer, calls=1, tool_calls=0, agents=1, usage=usage, steps=steps)
    return StatsReport(calls=1, tool_calls=0, agents=1, usage=usage, turns=[turn])


@settings(max_examples=60, deadline=None)
@given(ANY, ANY, ANY, ANY, ANY, USAGE, st.integers(40, 130))
def test_whatever_texts_say_lines_fit_and_are_safe(
    user: str, agent: str, model: str, why: str, tool: str, usage: UsageSum, width: int
) -> None:
    report = one_turn(user=user, answer=user, usage=usage, agent=agent, model=model, why=why, tools=(tool,))
    report = report.model_copy(update={"findings": [Finding(kind="x", call=1, text=why)]})
    screen = shown(stats_view(report), width)
    assert visible(screen) == screen
    assert max(cell_len(line) for line in screen.split("\n")) <= width


def test_a_user_s_words_are_one_line_clipped_by_cells() -> None:
    usage = UsageSum(unknown_calls=1)
    lines = shown(stats_view(one_turn(user="日\n程" * 100, usage=usage))).splitlines()
    assert lines[0] == "Turn 1  " + "日 程" + "日 程" * 13 + "…"
    assert cell_len(lines[0]) <= 80


def test_unknown_is_never_0() -> None:
    screen = shown(stats_view(one_turn(usage=UsageSum(unknown_calls=1))))
    assert "in ? · cached ? · out ? · reasoning ? · hit rate unknown\n" in screen
    assert "        input        unknown\n" in screen


def test_zero_is_never_unknown() -> None:
    usage = UsageSum(input=868, cached=0, output=21, reasoning=0, unknown_calls=0)
    screen = shown(stats_view(one_turn(usage=usage)))
    assert "in 868 · cached 0 · out 21 · reasoning 0" in screen
    assert "        reasoning    0\n" in screen
    assert "the wire does not say" not in screen


def test_a_turn_says_why_it_took_its_calls_in_order_of_the_tree() -> None:
    screen = shown(stats_view(subagents_report()))
    places = [
        screen.index(words)
        for words in ("first call of the turn", "the first call of", "to answer create_", "to answer schedule_")
    ]
    assert places == sorted(places)


def test_failures_and_cuts_are_said() -> None:
    screen = shown(stats_view(hard_report()))
    assert "finish  error 429\n" in screen
    assert "finish  no response (upstream_unreachable)\n" in screen
    assert "finish  stop (client_closed)\n" in screen


def test_a_finding_that_names_call_12_does_not_name_call_1() -> None:
    found = [
        Finding(kind="x", call=1, text="the same again in call 12"),
        Finding(kind="x", call=3, text="calls 3, 4: no"),
    ]
    screen = shown(stats_view(subagents_report().model_copy(update={"findings": found})))
    assert "! call 1: the same again in call 12\n! calls 3, 4: no\n" in screen


def test_a_finding_names_its_call_once() -> None:
    report = one_turn(usage=UsageSum(unknown_calls=1)).model_copy(
        update={
            "findings": [
                Finding(kind="a", call=1, text="call 1 repeats look", estimate=True),
                Finding(kind="b", call=1, text="look repeats"),
            ]
        }
    )
    assert "! call 1 repeats look (estimate)\n! call 1: look repeats\n" in shown(stats_view(report))


def test_no_calls_say_so() -> None:
    nothing = StatsReport(calls=0, tool_calls=0, agents=0, usage=UsageSum(unknown_calls=0), turns=[], other_exchanges=1)
    assert shown(stats_view(nothing)) == (
        "No model calls on this tape.\n\n1 exchange is not a model call; wiretape show lists them.\n"
    )


def test_a_tally_of_one_agent_or_one_model_would_repeat_the_total() -> None:
    screen = shown(stats_view(subagents_report()))
    assert "By agent" in screen
    assert "By model" not in screen
