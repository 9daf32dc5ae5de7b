"""A debugger's screen without a terminal: keys go in, the characters on the screen come out."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from rich.cells import cell_len
from textual.app import App
from textual.events import Key
from textual.pilot import Pilot

from wiretape.adapters.live.decision_queue import DecisionQueue
from wiretape.adapters.tui.app import DebugScreen
from wiretape.cli.debug.open_debugger import open_debugger
from wiretape.debug.session import Debugger

_RUN = re.compile(r'<text class="[^"]*-r\d+" x="([\d.]+)" y="[\d.]+" [^>]*-line-(\d+)\)"[^>]*>([^<]*)</text>')
_CELL = 12.2  # how wide textual draws a cell in a picture
_NAMES = {
    " ": "space",
    "=": "equals_sign",
    ":": "colon",
    ".": "full_stop",
    "-": "minus",
    "<": "less_than_sign",
    ">": "greater_than_sign",
    "/": "slash",
    "?": "question_mark",
    "_": "underscore",
    "[": "left_square_bracket",
    "]": "right_square_bracket",
    '"': "quotation_mark",
    "~": "tilde",
}


class Seat:
    """Drives a screen: presses keys and reads its text."""

    def __init__(self, app: DebugScreen, pilot: Pilot[None]) -> None:
        self.app, self._pilot = app, pilot

    async def press(self, *keys: str) -> str:
        """Keys by textual's names. What the screen shows afterwards."""
        await self._pilot.press(*keys)
        return await self.text()

    async def type(self, text: str) -> str:
        """Like `press` for a whole text: textual would wait after each key until it is idle."""
        driver = self.app._driver
        assert driver is not None
        for lines_before, line in enumerate(text.split("\n")):
            if lines_before:
                await self._pilot.press("enter")
            for character in line:
                driver.send_message(Key(_NAMES.get(character, character), character))
            await self._pilot.pause()
        return await self.text()

    async def click(self, selector: str, offset: tuple[int, int]) -> str:
        await self._pilot.click(selector, offset=offset)
        return await self.text()

    async def text(self) -> str:
        await self.app.workers.wait_for_complete()  # findings are computed in a worker
        await self._pilot.pause()
        return text_of(self.app)

    async def wait_for(self, words: str) -> str:
        """Wait for these words; return the text of the screen."""
        for _ in range(600):
            if words in (shown := await self.text()):
                return shown
            await asyncio.sleep(0.05)
        raise AssertionError(f"{words!r} never came:\n{await self.text()}")


def at_screen(
    debugger: Debugger | Path,
    play: Callable[[Seat], Awaitable[None]],
    size: tuple[int, int] = (80, 24),
    queue: DecisionQueue | None = None,
) -> DebugScreen:
    """Sit at a screen of so many columns and lines. `queue`: where a program is at work."""
    app = DebugScreen(debugger if isinstance(debugger, Debugger) else open_debugger(str(debugger)), queue)

    async def sit() -> None:
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await play(Seat(app, pilot))

    asyncio.run(sit())
    return app


def after(debugger: Debugger | Path, keys: Sequence[str], size: tuple[int, int] = (80, 24)) -> str:
    """The screen after some keys."""
    shown = []

    async def play(seat: Seat) -> None:
        shown.append(await seat.press(*keys) if keys else await seat.text())

    at_screen(debugger, play, size)
    return shown[0]


def text_of(app: App[None]) -> str:
    """The characters of the screen, line by line, read from the picture that textual draws of it."""
    lines: list[str] = [""] * app.size.height
    for x, line, text in _RUN.findall(app.export_screenshot()):
        column, number = round(float(x) / _CELL), int(line)
        lines[number] += " " * (column - cell_len(lines[number])) + html.unescape(text).replace("\xa0", " ")
    return "\n".join(line.rstrip() for line in lines) + "\n"
