"""The command line at the bottom of the screen, with completion and history."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message
from textual.suggester import Suggester
from textual.widgets import Input

from wiretape.debug.session import Debugger


class _Completing(Suggester):
    """Suggests the first completion; the right arrow accepts it."""

    def __init__(self, debugger: Debugger, guard: AbstractContextManager[Any]) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._debugger = debugger
        self._guard = guard

    async def get_suggestion(self, value: str) -> str | None:
        if not value.strip():
            return None
        with self._guard:
            found = self._debugger.complete(value)
        return value[: found.start] + found.candidates[0] if found.candidates else None


class CommandLine(Input):
    """Tab completes, Tab again takes the next candidate; Up and Down browse the history."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "complete", "complete", show=False),
        Binding("up", "recall(-1)", "the previous command", show=False),
        Binding("down", "recall(1)", "the next command", show=False),
        Binding("escape", "leave", "back", show=False),
    ]

    @dataclass
    class Entered(Message):
        """The user entered a line. An empty line repeats the last command."""

        line: str

    def __init__(self, debugger: Debugger, guard: AbstractContextManager[Any]) -> None:
        """`guard` is the lock of the debugger's state."""
        completing = _Completing(debugger, guard)
        super().__init__(id="line", placeholder=": command", compact=True, select_on_focus=False, suggester=completing)
        self._debugger = debugger
        self._guard = guard
        self._cycle: tuple[str, tuple[str, ...], int] | None = None  # text before the candidate, candidates, index
        self._recalled = 0  # distance from the end of the history

    def begin(self, start: str) -> None:
        """Focus the command line with `start` as its text."""
        self.value, self._recalled, self._cycle = start, 0, None
        self.cursor_position = len(start)
        self.screen.set_focus(self)  # immediate: with `focus`, the next keys would still be commands

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        line, self.value, self._recalled, self._cycle = self.value, "", 0, None
        self.post_message(self.Entered(line))

    def action_complete(self) -> None:
        if not self.value:
            self.screen.focus_next()
            return
        if self._cycle is None or self.value != self._cycle[0] + self._cycle[1][self._cycle[2]]:
            with self._guard:
                found = self._debugger.complete(self.value, self.cursor_position)
            if not found.candidates:
                return
            self._cycle = self.value[: found.start], found.candidates, -1
        head, candidates, which = self._cycle
        which = (which + 1) % len(candidates)
        self._cycle = head, candidates, which
        self.value = head + candidates[which]
        self.cursor_position = len(self.value)

    def action_recall(self, direction: int) -> None:
        history = self._debugger.history
        place = min(max(self._recalled - direction, 0), len(history))
        self._recalled = place
        self.value = history[-place] if place else ""
        self.cursor_position = len(self.value)

    def action_leave(self) -> None:
        self.value = ""
        await_back = getattr(self.app, "action_show_step", None)
        if await_back is not None:
            await_back()
