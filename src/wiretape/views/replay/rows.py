"""The rows of a replay's summary: labels, and beside them text, two compared values, or a command to copy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Protocol, TypeAlias

from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from wiretape.compare.excerpt import LIVE, RECORDED
from wiretape.matching.report import ReportedExchange
from wiretape.views.printable import graphemes, visible

_LABEL = 11
_INDENT = 2 + _LABEL + 1
_NARROWEST = 20


class Beside(Protocol):
    """The content beside a label, as lines for a width."""

    def lines(self, console: Console, width: int) -> Iterator[Text]: ...


Row: TypeAlias = tuple[str, Beside]


class Rows:
    """Labels and their content in two columns, without trailing spaces."""

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
    """Text that wraps under itself, leading spaces included."""

    text: str
    style: str = ""

    def lines(self, console: Console, width: int) -> Iterator[Text]:
        text = visible(self.text)
        said = text.lstrip()
        hang = " " * (len(text) - len(said))
        for line in Text(said, self.style).wrap(console, max(_NARROWEST, width - len(hang)), overflow="fold"):
            yield Text.assemble(hang, line)


@dataclass(frozen=True, slots=True)
class CommandRow:
    """A command that is never wrapped: beside its purpose, or below it if the line is too long."""

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
    """A recorded value above a live one, with a mark under the first character that differs."""

    recorded: str
    live: str
    hang: int
    other: str = LIVE  # label of the second value

    def lines(self, console: Console, width: int) -> Iterator[Text]:
        room = max(_NARROWEST, width - self.hang - len(RECORDED))
        recorded, live, same = _aligned(visible(self.recorded), visible(self.live), room)
        yield from self._value(RECORDED, recorded, room)
        first, *more = self._value(self.other, live, room)
        yield first
        if same and recorded != live:  # without a common start, no mark is needed
            yield Text.assemble(" " * (self.hang + len(LIVE) + cell_len(live[:same])), ("^", "bold yellow"))
        yield from more

    def _value(self, label: str, value: str, room: int) -> Iterator[Text]:
        for position, part in enumerate(chop_cells(value, room) or [value]):
            yield Text(" " * self.hang + (label if not position else " " * len(label)) + part)


def _aligned(recorded: str, live: str, room: int) -> tuple[str, str, int]:
    """Cut both values so that the difference is on the first line. Return them and their common length."""
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


_MOST = 12


def named_calls(named: Sequence[ReportedExchange]) -> str:
    """Return `calls 1, 2, 3 and x7`. A long list is cut and counted."""
    calls = [str(name.call) for name in named if name.call is not None]
    others = [f"x{name.exchange}" for name in named if name.call is None]
    shown = [("call " if len(calls) == 1 else "calls ") + ", ".join(_cut(calls))] if calls else []
    return " and ".join([*shown, *([", ".join(_cut(others))] if others else [])])


def _cut(names: list[str]) -> list[str]:
    return names if len(names) <= _MOST else [*names[:_MOST], f"… ({len(names)} in all)"]
