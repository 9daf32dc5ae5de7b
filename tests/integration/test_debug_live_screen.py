"""The debugger's screen with a running program: keys in, characters out, and the answers the program gets."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

pytest.importorskip("textual", reason="the screen needs textual (extra `tui`)")

from tests.support.golden import check_screen
from tests.support.live import Stage, recorded, stage
from tests.support.screens import Seat, at_screen

from wiretape.adapters.tui import app as screen

pytestmark = pytest.mark.slow

NUMBERS = (1, 2, 3, 4)


@pytest.fixture(autouse=True)
def _in_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)


def sit(on: Stage, play: Callable[[Seat], Awaitable[None]], size: tuple[int, int] = (80, 24)) -> None:
    at_screen(on.queue.debugger, play, size, on.queue)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_what_it_looks_like(size: tuple[int, int]) -> None:
    with stage() as on:
        on.play(lambda: [on.ask(recorded(number)).status_code for number in NUMBERS])

        async def play(seat: Seat) -> None:
            assert "not started" in await seat.wait_for("not running yet")
            await seat.type("Btool=create_calendar_event\n")
            await seat.press("c")
            check_screen(f"debug_held_{size[0]}x{size[1]}", await seat.wait_for("held: c release"))

        sit(on, play, size)


def test_from_the_first_call_to_the_programs_end() -> None:
    with stage() as on:
        on.play(lambda: [on.ask(recorded(number)).status_code for number in NUMBERS])

        async def play(seat: Seat) -> None:
            await seat.press("s")
            shown = await seat.wait_for("held: 1")
            assert "call 1 of 1, request · root" in shown
            assert "call 1 is held before it is sent" in shown
            await seat.press("s")
            shown = await seat.wait_for("held: 2")
            assert "agent schedule_event" in shown  # the tree has grown
            assert "call 1 of 2, answer" in await seat.press("S")  # back among the calls so far
            assert "held: 2" in await seat.press("s")
            await seat.press("r")
            assert "gets the recorded answer" in await seat.wait_for("gets the recorded answer")
            await seat.press("c")
            assert "ended (0)" in await seat.wait_for("ended (0)")

        sit(on, play)
        assert on.result() == [200] * 4


def test_an_answer_is_edited_in_the_users_editor(monkeypatch: pytest.MonkeyPatch) -> None:
    written = '[{"tool": "schedule_event", "arguments": {"request": "Lunch"}}]'
    seen: list[str] = []

    def in_editor(text: str) -> str:
        seen.append(text)
        return text[: text.index('{\n    "tool"')] + written[1:]

    monkeypatch.setattr(screen, "in_editor", in_editor)
    monkeypatch.setattr(screen.DebugScreen, "suspend", lambda self: screen.nullcontext())
    with stage() as on:
        on.play(lambda: on.ask(recorded(1)).text)

        async def play(seat: Seat) -> None:
            await seat.type("Btool=schedule_event\n")
            await seat.press("c")
            await seat.wait_for("held: 1")
            await seat.press("E")
            assert "changed the" in await seat.wait_for("changed the")
            await seat.press("c")
            await seat.wait_for("ended (0)")

        sit(on, play)
        assert "schedule_event" in seen[0]
        assert "Lunch" in on.result()


def test_a_miss_is_shown_and_accepted_with_a_key() -> None:
    with stage() as on:
        other = recorded(3)
        other["input"][-1]["output"] = "OK: created 'Lunch'"
        on.play(lambda: [on.ask(body).status_code for body in (recorded(1), recorded(2), other, recorded(4))])

        async def play(seat: Seat) -> None:
            await seat.press("c")
            shown = await seat.wait_for("held: 3")
            assert "created 'Lunch'" in shown
            await seat.press("y")
            await seat.press("c")
            await seat.wait_for("ended (0)")

        sit(on, play, (120, 40))
        assert on.result() == [200] * 4


def test_the_hint_for_a_held_call_disappears_with_it() -> None:
    with stage() as on:
        other = recorded(3)
        other["input"][-1]["output"] = "OK: created 'Lunch'"
        on.play(lambda: [on.ask(body).status_code for body in (recorded(1), recorded(2), other, recorded(4))])

        async def play(seat: Seat) -> None:
            await seat.press("c")
            assert "is held before it is sent" in await seat.wait_for("held: 3")
            await seat.type(":accept\n")
            shown = await seat.wait_for("ended (0)")
            for _ in range(100):
                if "is held before it is sent" not in shown:
                    break
                await asyncio.sleep(0.1)
                shown = await seat.text()
            assert "is held before it is sent" not in shown

        sit(on, play, (120, 40))
        assert on.result() == [200] * 4


def test_an_error_stays_on_the_screen() -> None:
    with stage() as on:
        on.play(lambda: None)

        async def play(seat: Seat) -> None:
            assert "serve needs a held call" in await seat.press("r")

        sit(on, play)
