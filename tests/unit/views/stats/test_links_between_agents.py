"""What agents said to one another, on a terminal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from tests.support.views import plain_console

from wiretape.analyze.report import LinkReport
from wiretape.views.printable import visible
from wiretape.views.stats.agents import MOST, between

STARTED = LinkReport(
    kind="started", from_call=1, to_call=2, to_agent="scout", basis="header", certainty="certain", tool="subagent"
)
MESSAGE = LinkReport(
    kind="message", from_call=3, to_call=5, from_agent="root", to_agent="scout", basis="id", certainty="certain"
)


def lines(*links: LinkReport, width: int = 80) -> list[str]:
    return [line.plain for line in between(links, plain_console(width), width)]


def test_agents_that_only_start_one_another_need_no_lines() -> None:
    assert lines(STARTED, STARTED.model_copy(update={"kind": "result"})) == []


def test_every_line_says_what_it_rests_on() -> None:
    report = MESSAGE.model_copy(
        update={"kind": "report", "basis": "data_flow", "certainty": "likely", "to_agent": "root"}
    )
    guess = MESSAGE.model_copy(update={"basis": "order", "certainty": "possible"})
    assert lines(STARTED, MESSAGE, report, guess) == [
        "",
        "Between agents",
        "call 3    message to scout, call 5 (by an id)",
        "call 3    report to root, call 5 (likely, by its text)",
        "call 3    message to scout, call 5 (possibly, by its order)",
    ]


def test_what_arrived_nowhere_and_lists() -> None:
    lost = MESSAGE.model_copy(update={"to_agent": None, "to_call": None, "detail": "not delivered: no such agent"})
    listed = MESSAGE.model_copy(
        update={"kind": "listed", "to_call": None, "detail": "running; 1 of its calls had begun"}
    )
    unknown = listed.model_copy(update={"to_agent": None, "detail": "a-7 complete; no call of it is on the tape"})
    assert lines(lost, listed, unknown)[2:] == [
        "call 3    message to an agent without calls here, not delivered: no such agent",
        "          (by an id)",
        "call 3    list of agents: scout: running; 1 of its calls had begun",
        "call 3    list of agents: a-7 complete; no call of it is on the tape",
    ]


def test_more_than_a_screenful_is_counted() -> None:
    assert lines(*[MESSAGE] * (MOST + 5))[-1] == "5 more: wiretape stats --json lists them"


@given(st.text(max_size=200), st.text(max_size=200), st.integers(40, 120))
def test_whatever_agents_are_called_and_tools_say_lines_fit(name: str, said: str, width: int) -> None:
    odd = MESSAGE.model_copy(update={"to_agent": name, "detail": said})
    found = lines(odd, odd.model_copy(update={"kind": "listed"}), width=width)
    assert all(cell_len(line) <= width for line in found)
    assert visible("\n".join(found)) == "\n".join(found)
