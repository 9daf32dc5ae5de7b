"""Aligned rows of cells, wide characters included.

rich's Table cannot put a sentence across all columns under a row, and cannot share columns between tables, as the
turns of a report do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text

from wiretape.views.printable import graphemes

GAP = 2


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column: its title, alignment and smallest width."""

    title: str
    right: bool = False  # numbers
    flexible: bool = False  # is narrowed, and wraps its cells, if the table is too wide
    least: int = 8  # smallest width of a flexible column


@dataclass(frozen=True, slots=True)
class Fit:
    """The widths of columns. `fits` is False if the narrowest table is too wide."""

    widths: tuple[int, ...]
    gap: int
    fits: bool


def fit(columns: Sequence[TableColumn], rows: Iterable[Sequence[Text]], width: int) -> Fit:
    """Fit columns to a width: first smaller gaps, then narrower flexible columns, the widest first."""
    widths = [cell_len(column.title) for column in columns]
    for row in rows:
        widths = [max(wide, cell.cell_len) for wide, cell in zip(widths, row, strict=True)]
    gaps = len(widths) - 1
    gap = GAP if sum(widths) + GAP * gaps <= width else 1
    excess = sum(widths) + gap * gaps - width
    while excess > 0:
        give = [i for i, column in enumerate(columns) if column.flexible and widths[i] > column.least]
        if not give:
            break
        widths[max(give, key=lambda i: widths[i])] -= 1
        excess -= 1
    return Fit(tuple(widths), gap, excess <= 0)


def row_lines(columns: Sequence[TableColumn], shape: Fit, row: Sequence[Text]) -> Iterator[Text]:
    """Yield the lines of a row. A cell that is too wide wraps inside its column."""
    wrapped = [wrap_name(cell, wide) for cell, wide in zip(row, shape.widths, strict=True)]
    for number in range(max(len(lines) for lines in wrapped)):
        line = Text(no_wrap=True, overflow="fold")
        for column, wide, lines in zip(columns, shape.widths, wrapped, strict=True):
            cell = lines[number] if number < len(lines) else Text()
            blank = " " * max(0, wide - cell.cell_len)
            line.append_text(Text.assemble(blank, cell) if column.right else Text.assemble(cell, blank))
            line.append(" " * shape.gap)
        line.rstrip()
        yield line


_JOINT = re.compile(r"[-_/:· ](?=[^-_/:· ])|\.(?=\D)")


def wrap_name(name: Text, width: int) -> list[Text]:
    """Wrap a name at its separators (`claude-sonnet-4-5-` / `20250929`), or anywhere if it has no separator.

    Each line has at least one character.
    """
    if name.cell_len <= width:
        return [name]
    lead = len(name.plain) - len(name.plain.lstrip(" └"))
    hanging = lead + 2 <= width and lead <= width // 2  # later lines have the indent of the name
    first, *more = name.divide(_cuts(name.plain, lead, width, lead if hanging else 0))
    return [first, *(Text.assemble(" " * lead if hanging else "", line) for line in more)]


def _cuts(plain: str, lead: int, width: int, indent: int) -> Iterator[int]:
    """Yield the start of each further line. `lead`: characters before the name; `indent`: cells of further lines."""
    joints = {match.end() for match in _JOINT.finditer(plain, lead)}
    at = start = joint = 0  # in `plain`: this piece, this line, the last joint
    used = behind = hang = 0  # cells: of this line, after its last joint, of its indent
    for piece in graphemes(plain):
        cells = cell_len(piece)
        if at in joints:
            joint, behind = at, 0
        while used + cells > width and at > start:
            # A separator in the first half of the line is not used, because most of the line would stay empty.
            early = joint <= start or hang + joint - start <= (hang + at - start) // 2
            start, kept = (at, 0) if early else (joint, behind)
            hang = indent
            used = hang + kept
            yield start
        at += len(piece)
        used += cells
        behind += cells


def header_line(columns: Sequence[TableColumn], shape: Fit, style: str = "dim") -> Text:
    """Return the line of titles."""
    cells = []
    for column, wide in zip(columns, shape.widths, strict=True):
        blank = " " * (wide - cell_len(column.title))
        cells.append(blank + column.title if column.right else column.title + blank)
    return Text((" " * shape.gap).join(cells).rstrip(), style=style, no_wrap=True, overflow="fold")
