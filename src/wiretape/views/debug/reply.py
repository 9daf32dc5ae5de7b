"""Views of a command's reply: each kind of part has its view."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from wiretape.debug.detail import ModelContext
from wiretape.debug.difference import CallComparison, CallDifference
from wiretape.debug.replies import Arrival, CommandReply, Listing, ListingRow, Part, SearchMatch, Sentence, Tone, Value
from wiretape.model.wording import plural, window
from wiretape.views.debug.context import context_view
from wiretape.views.debug.place import brief_text, place_view
from wiretape.views.printable import json_text, one_line, visible
from wiretape.views.prose import Heading, Indented, labelled
from wiretape.views.rows import TableColumn, fit, header_line, row_lines

_STYLES: dict[Tone, str] = {"plain": "", "good": "green", "bad": "yellow", "dim": "dim"}
_BEFORE, _AROUND = 30, 160  # characters before the first difference of two texts, and in all
_MOST = 40  # differences shown of a request or an answer


def reply_view(reply: CommandReply) -> RenderableType:
    """The view of a reply, or of its error."""
    return _ReplyView(reply)


@dataclass(frozen=True, slots=True)
class _ReplyView:
    reply: CommandReply

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for number, part in enumerate(self.reply.parts):
            if number and isinstance(part, Listing) and part.title:
                yield Text()
            yield from part_view(part)
        if self.reply.error is not None:
            yield Indented(Text(visible(self.reply.error), style="red"), 0)


def part_view(part: Part) -> Iterator[RenderableType]:
    match part:
        case Sentence(text=text, tone=tone):
            yield Indented(Text(visible(text), style=_STYLES[tone]), 0)
        case Arrival():
            yield place_view(part)
        case Listing():
            yield listing_view(part)
        case Value():
            yield from _value(part)
        case SearchMatch():
            yield from _matched(part)
        case CallComparison():
            yield _ComparisonView(part)
        case ModelContext():
            yield context_view(part)
        case _:
            assert_never(part)


def _value(part: Value) -> Iterator[RenderableType]:
    """Numbers and short texts on one line, long texts below their name, other values as JSON."""
    value, name = part.value, one_line(part.name)
    match value:
        case None:
            yield _named(name, Text("unknown", style="dim"))
        case str() if "\n" not in value and len(value) <= 200:
            yield _named(name, Text(visible(value) or '""'))
        case str():
            yield Text.assemble((name, "bold"), (f"  {plural(len(value), 'character')}", "dim"))
            yield Indented(Text(visible(value)), 2)
        case float():
            yield _named(name, Text(f"{value:.4g}"))
        case bool() | int():
            yield _named(name, Text(json_text(value)))
        case _:
            first, _, rest = json_text(value).partition("\n")
            yield _named(name, Text(first))
            if rest:
                yield Indented(Text(rest), 0)  # a separate text: one style wraps faster


def _named(name: str, said: Text) -> Indented:
    return Indented(Text.assemble((name, "bold"), " = ").append_text(said), 0)


def _matched(part: SearchMatch) -> Iterator[RenderableType]:
    yield Text()
    yield Text(f"match {part.number} of {plural(part.total, 'call')}", style="bold")
    for excerpt in part.excerpts:
        yield Indented(_highlighted(one_line(excerpt), part.pattern), 2)


def _highlighted(excerpt: str, pattern: str) -> Text:
    text, at = Text(excerpt), excerpt.casefold().find(pattern.casefold())
    if at >= 0:
        text.stylize("reverse", at, at + len(pattern))
    return text


ARROW = "→"
_LEAST = 10


def listing_view(listing: Listing) -> RenderableType:
    return _ListingView(listing)


@dataclass(frozen=True, slots=True)
class _ListingView:
    listing: Listing

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        listing, width = self.listing, options.max_width
        if listing.title:
            yield Text(one_line(listing.title), style="bold")
        if not listing.rows:
            yield Text(listing.empty, style="dim")
            return
        arrows = any(row.here for row in listing.rows)
        columns = [TableColumn(c.title, c.right, flexible=c.wide, least=_LEAST) for c in listing.columns]
        columns = [TableColumn(""), *columns] if arrows else columns
        cells = [_cells(row, arrows) for row in listing.rows]
        shape = fit(columns, cells, width)
        yield header_line(columns, shape)
        for row, own in zip(listing.rows, cells, strict=True):
            yield from row_lines(columns, shape, own)
            for said in row.below:
                yield from labelled(console, "", Text(one_line(said)), width, indent=4, label_width=0)


def _cells(row: ListingRow, arrows: bool) -> list[Text]:
    style = "bold" if row.here else ""
    # Blanks at the start of a cell draw a tree.
    cells = [Text(_indented(cell), style=style) for cell in row.cells]
    return [Text(ARROW if row.here else "", style="green"), *cells] if arrows else cells


def _indented(cell: str) -> str:
    bare = cell.lstrip(" ")
    return " " * (len(cell) - len(bare)) + one_line(visible(bare))


@dataclass(frozen=True, slots=True)
class _ComparisonView:
    comparison: CallComparison

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        found = self.comparison
        yield Indented(Text(one_line(f"from {found.first} to {found.second}"), style="bold"), 0)
        if found.note:
            yield Indented(Text(one_line(found.note)), 0)
        for what, before, after in found.figures:
            arrow = before if before == after else f"{before} → {after}"
            yield Text.assemble((what.ljust(12), "dim"), arrow)
        same = f"; the first {plural(found.same_messages, 'message')} are the same" if found.same_messages else ""
        width = options.max_width
        yield from _changes(console, width, "request", found.request, same)
        yield from _changes(console, width, "answer", found.answer)


def _changes(
    console: Console, width: int, title: str, changes: tuple[CallDifference, ...], same: str = ""
) -> Iterator[RenderableType]:
    yield Heading(f"{title}: {plural(len(changes), 'difference') if changes else 'no difference'}{same}")
    for change in changes[:_MOST]:
        yield from _change(console, width, change)
    if len(changes) > _MOST:
        yield Text(f"… {plural(len(changes) - _MOST, 'more difference')}", style="dim")


def _change(console: Console, width: int, change: CallDifference) -> Iterator[RenderableType]:
    sign, style = {"added": ("+", "green"), "removed": ("-", "red"), "changed": ("~", "yellow")}[change.how]
    where = one_line(change.path)
    if change.character is not None:
        where += f", character {change.character}"
    yield Indented(Text(f"{sign} {where}", style=style), 0)
    if change.how == "changed":
        start = max(0, (change.character or 0) - _BEFORE)
        for label, text, colour in (("-", change.before, "red"), ("+", change.after, "green")):
            said = Text(_around(text, start), style=colour)
            yield from labelled(console, label, said, width, indent=4, label_width=2)
        return
    text = change.after if change.how == "added" else change.before
    yield Indented(Text(brief_text(visible(text or "")) or "(empty)"), 4)


def _around(text: str | None, start: int) -> str:
    if text is None:
        return "(nothing)"
    return one_line(window(text, start, _AROUND))
