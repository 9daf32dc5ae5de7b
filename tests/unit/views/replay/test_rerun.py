"""The table of a rerun, exactly as it is printed."""

from __future__ import annotations

import io

from wiretape.compare.difference import Difference, Tier
from wiretape.model.call import ToolCall
from wiretape.rerun.history_comparison import ProgramChoice
from wiretape.rerun.report import RerunReport, build_rerun_report, rerun_call
from wiretape.rerun.values import CallOutcome, StoppedThread
from wiretape.views.replay.rerun import RerunView, rerun_line
from wiretape.views.terminal import make_console

ASKS = (ToolCall("c1", "weather", '{"city": "Oslo"}'),)
ROWS = [
    CallOutcome(
        1,
        0,
        "root",
        "openai.chat",
        "given",
        "the first request of its thread",
        asks=ASKS,
        parts="the model called tools with other arguments",
    ),
    CallOutcome(None, 0, "root", "openai.chat", "new", said="Cold, I think."),
    CallOutcome(2, 0, "root", "openai.chat", "not reached"),
    CallOutcome(
        3,
        0,
        "root",
        "openai.chat",
        "differs",
        tier=Tier.MASKED,
        differences=(Difference("messages[4].content", "Seven degrees.", "Nine degrees."),),
        given=(ProgramChoice("message", "messages[5]", {}), ProgramChoice("setting", "temperature", 1)),
    ),
]


def report(live: str | None) -> RerunReport:
    stops = [StoppedThread(1, 3, "no recorded result for \x1b[31mboom({})")]
    return build_rerun_report("x.tape", live, True, ROWS, stops, "new.tape" if live else None)


def printed(live: str | None, width: int) -> list[str]:
    file = io.StringIO()
    console = make_console(file=file)
    console.width = width
    console.print(RerunView(report(live)))
    return file.getvalue().splitlines()


def test_a_live_rerun_at_80_columns() -> None:
    assert printed("http://127.0.0.1:9/v1", 80) == [
        "rerun of x.tape, sent to http://127.0.0.1:9/v1",
        "    1  root  given        the first request of its thread; the runs part: the",
        "                          model called tools with other arguments:",
        '                          weather({"city": "Oslo"})',
        "    +  root  new          says Cold, I think.",
        "    2  root  not reached",
        "    3  root  differs      equal except for dates, times and ids; the program",
        "                          adds messages[5], sets temperature anew",
        "       at messages[4].content",
        "         recorded  Seven degrees.",
        "         live      Nine degrees.",
        r"stopped after call 3: no recorded result for \x1b[31mboom({})",
        "  --tools FILE.py has functions that answer what the tape cannot",
        "4 calls (1 given, 1 new, 1 not reached, 1 differs): the runs part at call 1;",
        "recorded as new.tape",
    ]


def test_a_rerun_of_a_tape_says_grown_where_nothing_is_live() -> None:
    lines = printed(None, 80)
    assert lines[0] == "rerun of x.tape, against itself"
    assert "         grown     Nine degrees." in lines


def test_a_narrow_terminal_wraps_without_losing_a_word() -> None:
    lines = printed(None, 50)
    assert all(len(line) <= 50 for line in lines)
    assert "sets temperature anew" in " ".join(" ".join(lines).split())


def test_a_live_rerun_shows_what_the_model_says_now() -> None:
    row = CallOutcome(2, 0, "root", "openai.chat", "equal", said="It rains. " * 20)
    live = build_rerun_report("x.tape", "http://127.0.0.1:9/v1", False, [row], [], None)
    for made, says in ((live, True), (live.model_copy(update={"live": None}), False)):
        file = io.StringIO()
        console = make_console(file=file)
        console.print(RerunView(made))
        assert ("    2  root  equal        says It rains. It rains." in file.getvalue()) is says
    assert len(rerun_line(rerun_call(row), 80).plain) <= 80
    assert len(rerun_line(rerun_call(row), 120).plain) > 100


def test_a_line_for_each_call_while_it_goes_on() -> None:
    assert rerun_line(rerun_call(ROWS[1])).plain == "    +  root      new          Cold, I think."
    assert (
        rerun_line(rerun_call(ROWS[0])).plain
        == "    1  root      given        the model called tools with other arguments"
    )
