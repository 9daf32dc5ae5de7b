"""Renders the cost of each tool."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from wiretape.analyze.tool_costs import ToolCost, ToolReport
from wiretape.model.wording import UNKNOWN, count_text, numbered, plural
from wiretape.views.printable import name
from wiretape.views.prose import labelled, sentence
from wiretape.views.rows import TableColumn, fit, header_line, row_lines

COLUMNS = [
    TableColumn("tool", flexible=True, least=10),
    *(TableColumn(title, right=True) for title in ("schema", "requests", "in all", "calls", "added")),
    TableColumn("context"),
]


def tools_view(report: ToolReport) -> RenderableType:
    return _ToolsView(report)


@dataclass(frozen=True, slots=True)
class _ToolsView:
    report: ToolReport

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        tools, width = self.report.tools, options.max_width
        if not tools:
            yield Text("No tools on this tape.")
            return
        rows = [_row(one) for one in tools]
        shape = fit(COLUMNS, rows, width)
        if shape.fits:
            yield header_line(COLUMNS, shape)
        for one, row in zip(tools, rows, strict=True):
            if shape.fits:
                yield from row_lines(COLUMNS, shape, row)
            else:
                yield row[0]
                yield from labelled(console, "", Text(_words(one)), width, 2, 0)
            yield from _notes(one, console, width)
        yield Text()
        yield sentence("schema and added are tokens; every later request sends the added tokens again", "dim")
        if any(_guessed(one) for one in tools):
            yield sentence("~  estimated by the length of the texts", "dim")


def _row(one: ToolCost) -> list[Text]:
    return [
        Text(name(one.tool), style="bold"),
        Text(_about(one.schema_tokens, one.schema_measured)),
        Text(str(one.requests)),
        Text(_about(one.schema_total, one.schema_measured)),
        Text(str(one.calls)),
        Text(_about(one.added_tokens, one.added_measured) if one.calls else "–"),
        Text(_context(one), style="red" if one.append_only is False else ""),
    ]


def _about(number: int | None, measured: bool) -> str:
    return count_text(number) if measured or number is None else f"~{number:,}"


def _guessed(one: ToolCost) -> bool:
    schema = one.schema_tokens is not None and not one.schema_measured
    return schema or (one.added_tokens is not None and not one.added_measured)


def _context(one: ToolCost) -> str:
    if one.append_only is None:
        return "–" if not one.calls else UNKNOWN
    return "append-only" if one.append_only else "rewritten"


def _words(one: ToolCost) -> str:
    """The row as a sentence, for a narrow terminal."""
    schema = f"schema {_about(one.schema_tokens, one.schema_measured)} in {plural(one.requests, 'request')}"
    added = f"added {_about(one.added_tokens, one.added_measured)} in {plural(one.calls, 'call')}"
    return " · ".join([schema, added if one.calls else "never called", f"context {_context(one)}"])


def _notes(one: ToolCost, console: Console, width: int) -> Iterator[Text]:
    notes = []
    if one.schema_stable is False:
        notes.append("its definition is not the same in all requests")
    if one.broken_in:
        notes.append(f"{numbered('call', one.broken_in, 8)} did not start with the request before it")
    unknown = one.results - one.added_calls
    if one.added_tokens is not None and unknown > 0:
        notes.append(f"what {plural(unknown, 'more result')} added is unknown")
    if not one.calls and one.requests:
        notes.append("never called")
    for note in notes:
        yield from labelled(console, "", Text(note, style="dim"), width, 2, 0)
