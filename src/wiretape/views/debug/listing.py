"""A debugger's tables: columns that line up, an arrow at the row of the current place, sentences under a row."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from wiretape.debug.replies import Listing, Row
from wiretape.views.printable import one_line, visible
from wiretape.views.prose import labelled
from wiretape.views.rows import Column, fit, header_line, row_lines

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
        columns = [Column(c.title, c.right, flexible=c.wide, least=_LEAST) for c in listing.columns]
        columns = [Column(""), *columns] if arrows else columns
        cells = [_cells(row, arrows) for row in listing.rows]
        shape = fit(columns, cells, width)
        yield header_line(columns, shape)
        for row, own in zip(listing.rows, cells, strict=True):
            yield from row_lines(columns, shape, own)
            for said in row.below:
                yield from labelled(console, "", Text(one_line(said)), width, indent=4, label_width=0)


def _cells(row: Row, arrows: bool) -> list[Text]:
    style = "bold" if row.here else ""
    # The blanks at a cell's start are a tree's.
    cells = [Text(_indented(cell), style=style) for cell in row.cells]
    return [Text(ARROW if row.here else "", style="green"), *cells] if arrows else cells


def _indented(cell: str) -> str:
    bare = cell.lstrip(" ")
    return " " * (len(cell) - len(bare)) + one_line(visible(bare))
