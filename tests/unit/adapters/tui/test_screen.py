"""The debugger's screen: keys in, characters out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

pytest.importorskip("textual", reason="the screen needs textual (extra `tui`)")

from tests.support.golden import check_screen
from tests.support.screens import Seat, after, at_screen
from tests.support.upstream import CHAT_EVENTS

from wiretape.adapters.tui.key_bindings import GROUPS, HELD_KEYS, LIVING
from wiretape.debug.annotations import Annotations
from wiretape.debug.commands.registry import COMMANDS, find
from wiretape.debug.session import Debugger
from wiretape.model.http import Ended, Exchange, Headers, JsonBody, Request, Response, StreamBody
from wiretape.runs.run import build_run
from wiretape.wire.registry import decode

pytestmark = pytest.mark.slow

CAPTURES = Path(__file__).parents[4] / "captures"
Play = Callable[[Seat], Awaitable[None]]


@pytest.fixture(autouse=True)
def _in_the_captures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CAPTURES)
    monkeypatch.delenv("NO_COLOR", raising=False)


def sit(play: Play, tape: str = "subagents.tape", size: tuple[int, int] = (80, 24)) -> None:
    """Play at the first call."""

    async def from_the_first_call(seat: Seat) -> None:
        await seat.press("s")
        await play(seat)

    at_screen(Path(tape), from_the_first_call, size)


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (120, 40)])
@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("opened", []),
        ("subagent", ["s", "s"]),
        ("context", ["end", "N", "x"]),
        ("difference", ["s", "s", "s", "d"]),
        ("help", ["?"]),
    ],
)
def test_what_it_looks_like(name: str, keys: list[str], columns: int, lines: int) -> None:
    pressed = ["question_mark" if key == "?" else key for key in keys]
    check_screen(f"debug_{name}_{columns}x{lines}", after(Path("subagents.tape"), pressed, (columns, lines)))


def test_every_key_is_on_the_help_page_and_does_a_command_there_is() -> None:
    shown = after(Path("subagents.tape"), ["question_mark"], (120, 160))
    for _, keys in GROUPS:
        for key in keys:
            assert key.help in shown
            if key.command:
                assert find(key.command)[0].name == key.command.split()[0]
    for name in COMMANDS:
        assert name in shown


def test_the_hint_for_a_held_call_names_every_key_that_decides_about_it() -> None:
    deciding = {key.shown for key in LIVING if key.command not in ("held", "output")}
    assert deciding <= {words.split()[0] for words in HELD_KEYS.removeprefix("held: ").split("  ")}
    assert len(HELD_KEYS) < 80


def test_it_opens_at_the_start_with_the_overview() -> None:
    async def play(seat: Seat) -> None:
        shown = await seat.text()
        assert "at the start · 4 calls" in shown
        assert "4 calls, 1 turn, 2 agents, 2 tool calls" in shown
        assert "帮我约明天下午" in shown
        await seat.type(":break 1\n")
        assert "call 1 of 4, request" in await seat.press("c")
        assert "帮我约明天下午" in await seat.press("home")

    at_screen(Path("subagents.tape"), play, (120, 40))


def test_into_the_subagent_and_back_out() -> None:
    async def play(seat: Seat) -> None:
        assert "call 1 of 4, answer · root" in await seat.text()
        assert "call 2 of 4, answer · schedule_event" in await seat.press("s")
        assert "create_calendar_event returned" not in await seat.press("n")
        shown = await seat.press("f")
        assert "call 4 of 4, request · root" in shown
        assert "schedule_event returned" in shown
        assert "call 1 of 4, tool · root" in await seat.press("s", "S", "F")
        assert "call 1 of 4, answer · root" in await seat.press("N")

    sit(play)


def test_a_move_over_a_subagent() -> None:
    async def play(seat: Seat) -> None:
        assert "call 4 of 4, answer · root" in await seat.press("n")
        assert "call 1 of 4, answer · root" in await seat.press("N")
        assert "at the end of the tape" in await seat.press("end")
        assert "at the start of the tape" in await seat.press("home")

    sit(play)


def test_a_breakpoint_stops_in_both_directions_and_is_marked_in_the_tree() -> None:
    async def play(seat: Seat) -> None:
        shown = await seat.type(":break tool=create_calendar_event\n")
        assert "breakpoint 1: tool=create_calendar_event" in shown
        assert "● create_cal" in shown
        shown = await seat.press("c")
        assert "call 2 of 4, tool · schedule_event" in shown
        assert "breakpoint 1: tool=create_calendar_event" in shown
        assert "at the end" in await seat.press("c")
        assert "call 2 of 4, tool" in await seat.press("C")
        assert "●" not in await seat.type(":delete 1\n")

    sit(play)


def test_b_sets_a_breakpoint_at_this_call_and_clears_it() -> None:
    async def play(seat: Seat) -> None:
        assert "▶● 2" in await seat.press("s", "b")
        assert "▶ 2" in await seat.press("b")

    sit(play)


def test_search_goes_from_match_to_match() -> None:
    async def play(seat: Seat) -> None:
        shown = await seat.type("/2025-06-11\n")
        assert "call 2 of 4" in shown
        assert "match 1 of 3 calls" in shown
        assert "call 3 of 4" in await seat.press("right_square_bracket")
        assert "call 2 of 4" in await seat.press("left_square_bracket")

    sit(play, size=(120, 40))


def test_an_error_is_shown_and_changes_nothing() -> None:
    async def play(seat: Seat) -> None:
        shown = await seat.type(":goto 99\n")
        assert "the tape has no call 99" in shown
        assert "call 1 of 4, answer" in shown
        assert "unknown command 'frobnicate'" in await seat.type(":frobnicate\n")

    sit(play)


def test_tab_completes_and_then_takes_the_next_candidate() -> None:
    async def play(seat: Seat) -> None:
        assert "break tool=create_calendar_event" in await seat.type(":break tool=")  # offered, dim
        shown = await seat.press("tab", "tab")
        assert "break tool=schedule_event" in shown
        assert "breakpoint 1: tool=schedule_event" in await seat.press("enter")

    sit(play)


def test_the_arrow_key_recalls_the_history() -> None:
    async def play(seat: Seat) -> None:
        await seat.type(":print call\n")
        await seat.type(":")
        shown = await seat.press("up")
        assert shown.splitlines()[-2].strip() == "print call"

    sit(play)


def test_command_output_stays_on_the_right_until_escape() -> None:
    async def play(seat: Seat) -> None:
        shown = await seat.type(":print usage.input\n")
        assert "usage.input = 347" in shown
        assert "first call of the turn" in await seat.press("escape")

    sit(play)


def test_a_click_in_the_tree_goes_to_its_stop() -> None:
    async def play(seat: Seat) -> None:
        lines = (await seat.text()).splitlines()
        row = next(number for number, line in enumerate(lines) if "4 stop" in line)
        assert "call 4 of 4, answer" in await seat.click("#outline", (4, row - 1))

    sit(play)


def test_the_tree_is_walked_with_the_arrows() -> None:
    async def play(seat: Seat) -> None:
        shown = await seat.press("down", "down", "down", "enter")
        assert "call 2 of 4, answer · schedule_event" in shown

    sit(play)


def test_the_tree_folds() -> None:
    async def play(seat: Seat) -> None:
        shown = await seat.press("left")
        assert "2 create" not in shown
        assert "2 create" in await seat.press("right")

    sit(play)


def test_panes_change_their_widths() -> None:
    async def play(seat: Seat) -> None:
        edge = [(await seat.text()).splitlines()[1].index("│")]
        edge.append((await seat.press("greater_than_sign")).splitlines()[2].index("│"))
        edge.append((await seat.press("less_than_sign", "less_than_sign")).splitlines()[2].index("│"))
        assert edge[2] < edge[1]

    sit(play)


def test_ctrl_c_prints_how_to_leave() -> None:
    assert "q leaves" in after(Path("subagents.tape"), ["ctrl+c"])


def test_leaving() -> None:
    async def play(seat: Seat) -> None:
        await seat.app.run_action("leave")

    sit(play)


def streamed() -> Debugger:
    body = JsonBody({"model": "m", "stream": True, "messages": [{"role": "user", "content": "How is it?"}]})
    headers = Headers([("content-type", "text/event-stream")])
    answer = StreamBody(CHAT_EVENTS, [0, 100, 600, 610, 620])
    request = Request("POST", "https://api.openai.com/v1/chat/completions", Headers(), body)
    exchange = Exchange(1, 0, request, Response(200, headers, 100, answer), Ended.COMPLETE, 720)
    return Debugger(build_run(decode([exchange])), Annotations(exchanges={1: exchange}))


def test_an_answer_is_played_at_its_recorded_pace() -> None:
    async def play(seat: Seat) -> None:
        await seat.press("n", "a")
        shown = await seat.wait_for("5 of 5 events")
        assert "It is sunny." in shown
        assert "events" not in await seat.press("escape")

    at_screen(streamed(), play)


def test_an_unstreamed_answer_cannot_be_played() -> None:
    assert "was not streamed" in after(Path("subagents.tape"), ["n", "a"])


def test_a_tape_without_model_calls_is_shown_as_such() -> None:
    shown = after(Debugger(build_run([]), Annotations(name="empty.tape")), ["n", "b", "a"])
    assert "empty.tape" in shown
    assert "no call" in shown


def test_notes_and_findings_are_marked() -> None:
    shown = after(Path("weather-one-tool.tape"), ["n", "n"])
    assert "▶!" in shown


def test_without_colour_everything_is_readable(monkeypatch: pytest.MonkeyPatch) -> None:
    coloured = after(Path("subagents.tape"), ["s"])
    monkeypatch.setenv("NO_COLOR", "1")
    assert after(Path("subagents.tape"), ["s"]) == coloured
