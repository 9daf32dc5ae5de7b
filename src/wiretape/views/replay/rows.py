"""The rows of a replay's summary: labels, and beside them words, two values under each other, or a command to copy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Protocol, TypeAlias

from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from wiretape.compare.excerpt import LIVE, RECORDED
from wiretape.views.printable import graphemes, visible

_LABEL = 11
_INDENT = 2 + _LABEL + 1
_NARROWEST = 20


class Beside(Protocol):
    """What stands beside a label: lines that fit a width where they can."""

    def lines(self, console: Console, width: int) -> Iterator[Text]: ...


Row: TypeAlias = tuple[str, Beside]


class Rows:
    """Labels and what stands beside them, in two columns. No line ends in spaces."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = max(_NARROWEST, options.max_width - _INDENT)
        for label, beside in self._rows:
            for position, line in enumerate(beside.lines(console, width)):
                line.rstrip()
                head = f"  {label if not position else '':<{_LABEL}} "
                # A command that is longer than the line is left to the terminal: what it wraps is copied whole.
                yield Text.assemble(head, line, no_wrap=True, overflow="ignore")


@dataclass(frozen=True, slots=True)
class Words:
    """Text that goes on under itself, leading blanks included."""

    text: str
    style: str = ""

    def lines(self, console: Console, width: int) -> Iterator[Text]:
        text = visible(self.text)
        said = text.lstrip()
        hang = " " * (len(text) - len(said))
        for line in Text(said, self.style).wrap(console, max(_NARROWEST, width - len(hang)), overflow="fold"):
            yield Text.assemble(hang, line)


@dataclass(frozen=True, slots=True)
class Command:
    """A command that is never broken into lines: beside what it is for, or below it where that is too long."""

    why: str
    command: str

    def lines(self, console: Console, width: int) -> Iterator[Text]:
        why, command = visible(self.why), visible(self.command)
        if cell_len(f"{why} {command}") <= width:
            yield Text(f"{why} {command}")
            return
        yield from Words(why).lines(console, width)
        hang = len(why) - len(why.lstrip()) + 2
        yield Text(" " * hang + command)


@dataclass(frozen=True, slots=True)
class Compared:
    """A recorded value over a live one, with a mark under the first character that differs."""

    recorded: str
    live: str
    hang: int
    other: str = LIVE  # what stands before the second value

    def lines(self, console: Console, width: int) -> Iterator[Text]:
        room = max(_NARROWEST, width - self.hang - len(RECORDED))
        recorded, live, same = _aligned(visible(self.recorded), visible(self.live), room)
        yield from self._value(RECORDED, recorded, room)
        first, *more = self._value(self.other, live, room)
        yield first
        if same and recorded != live:  # a mark under the very first character would say nothing
            yield Text.assemble(" " * (self.hang + len(LIVE) + cell_len(live[:same])), ("^", "bold yellow"))
        yield from more

    def _value(self, label: str, value: str, room: int) -> Iterator[Text]:
        for position, part in enumerate(chop_cells(value, room) or [value]):
            yield Text(" " * self.hang + (label if not position else " " * len(label)) + part)


def _aligned(recorded: str, live: str, room: int) -> tuple[str, str, int]:
    """Both values from the same point on, chosen so that the difference is on the first line; how much is the same."""
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(recorded, live, strict=False)))
    if cell_len(recorded[:same]) <= room * 2 // 3:
        return recorded, live, same
    start, used = same, 0
    for piece in reversed(graphemes(recorded[:same])):
        used += cell_len(piece)
        if used >= room // 2:
            break
        start -= len(piece)
    return f"…{recorded[start:]}", f"…{live[start:]}", same - start + 1
