"""Renders the tapes of a directory as a table. A tape that cannot be read is listed with its problem."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from wiretape.model.wording import plural
from wiretape.views.figures import size
from wiretape.views.printable import one_line
from wiretape.views.prose import labelled
from wiretape.views.rows import TableColumn, fit, header_line, row_lines


class TapeEntry(BaseModel):
    """A tape in `wiretape ls --json`. Null: the tape could not be read."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str
    bytes: int
    started: str | None = None
    calls: int | None = None
    turns: int | None = None
    exchanges: int | None = None
    models: list[str] = []
    note: str | None = None
    client: dict[str, str | list[str]] | None = None
    problem: str | None = None
    warnings: list[str] = []


def list_view(entries: Sequence[TapeEntry]) -> RenderableType:
    """Render what `wiretape ls` shows."""
    return _ListView(entries)


COLUMNS = [
    TableColumn("tape", flexible=True, least=20),
    TableColumn("started"),
    TableColumn("turns", right=True),
    TableColumn("calls", right=True),
    TableColumn("exchanges", right=True),
    TableColumn("size", right=True),
]


@dataclass(frozen=True, slots=True)
class _ListView:
    entries: Sequence[TapeEntry]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        rows = [_row(entry) for entry in self.entries]
        shape = fit(COLUMNS, rows, width)
        if shape.fits:
            yield header_line(COLUMNS, shape)
        for entry, row in zip(self.entries, rows, strict=True):
            if not shape.fits or row[0].cell_len > shape.widths[0]:
                yield _unfolded(row[0])
            if shape.fits:
                path = row[0] if row[0].cell_len <= shape.widths[0] else Text()
                yield from row_lines(COLUMNS, shape, [path, *row[1:]])
            else:
                yield from labelled(console, "", Text(_numbers(entry)), width, indent=2, label_width=0)
            for said, style in _words(entry):
                yield from labelled(console, "", Text(said, style=style), width, indent=2, label_width=0)
        yield Text(_summary(self.entries), style="dim")


def _unfolded(path: Text) -> Text:
    """Return a path on one line, whatever its length, so that it can be copied."""
    path.no_wrap, path.overflow = True, "ignore"
    return path


def _row(entry: TapeEntry) -> list[Text]:
    numbers = (entry.turns, entry.calls, entry.exchanges)
    return [
        Text(one_line(entry.path), style="red" if entry.problem else "bold"),
        Text((entry.started or "")[:16].replace("T", " ")),
        *(Text("" if number is None else f"{number:,}") for number in numbers),
        Text(size(entry.bytes)),
    ]


def _numbers(entry: TapeEntry) -> str:
    """The row as a sentence, for a narrow terminal."""
    numbers = (("turn", entry.turns), ("call", entry.calls), ("exchange", entry.exchanges))
    return ", ".join([*(plural(n, noun) for noun, n in numbers if n is not None), size(entry.bytes)])


def _words(entry: TapeEntry) -> Iterator[tuple[str, str]]:
    """Yield the lines under a tape's row."""
    if entry.problem:
        yield one_line(entry.problem), "red"
    if entry.models:
        yield one_line(", ".join(entry.models)), "cyan"
    if entry.note:
        yield one_line(entry.note), "dim"
    for warning in entry.warnings:
        yield one_line(warning), "yellow"


def _summary(entries: Sequence[TapeEntry]) -> str:
    broken = sum(1 for entry in entries if entry.problem)
    return plural(len(entries), "tape") + (f", {broken} of them unreadable" if broken else "")
