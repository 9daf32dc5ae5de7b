"""Renders paragraphs: indented and wrapped text, headings, and labelled sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from wiretape.views.printable import graphemes

NARROWEST = 10  # the smallest width of a column of text
_BATCH = 64  # lines in one rich segment
_WORD = re.compile(r"(\A *+[^ ]++|[^ ]++) *+")
# Letters and signs of one cell and of two, none of which joins its neighbours.
_ONE = (
    "\u00a1-\u00ac\u00ae-\u024f\u0370-\u0377\u0384-\u0482\u048a-\u052f"
    "\u2010-\u2027\u2030-\u205e\u2190-\u2193\u2500-\u257f"
)
_TWO = "\u3001-\u3029\u3041-\u3096\u309b-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff60"
_COUNTED = re.compile(f"[ -~{_ONE}{_TWO}]+")
_WIDE = re.compile(f"[{_TWO}]+")


@dataclass(frozen=True, slots=True)
class Indented:
    """Indented text that wraps at the width."""

    text: Text
    indent: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = max(NARROWEST, options.max_width - self.indent)
        if not self.text.spans:  # one style: rich would be slow for long text
            yield from _indented(
                wrapped(console, self.text.plain, width), self.indent, console.get_style(self.text.style)
            )
            return
        for line in self.text.wrap(console, width, overflow="fold"):
            moved = Text.assemble(" " * self.indent, line, no_wrap=True, overflow="fold")
            moved.rstrip()
            yield moved


def _indented(lines: Iterator[str], indent: int, style: Style) -> Iterator[Segment]:
    blanks = " " * indent
    if style:
        for line in lines:
            yield from (Segment(blanks), Segment(line, style), Segment.line()) if line else (Segment.line(),)
        return
    while some := list(islice(lines, _BATCH)):
        yield Segment("".join(f"{blanks}{line}\n" if line else "\n" for line in some))


def wrapped(console: Console, text: str, width: int) -> Iterator[str]:
    """Wrap text as rich does, and strip trailing spaces.

    A line has at least one character, so a wide character may exceed a `width` of 1.
    """
    width = max(1, width)
    for line in text.split("\n"):
        if len(line) <= width and line.isascii() and line.isprintable():
            yield line.rstrip()
        elif _COUNTED.fullmatch(line):
            yield from _broken(line, width)
        elif width == 1:  # rich loses wide characters here
            yield from (character for one in graphemes(line) if (character := one.rstrip()))
        else:  # characters that combine, or whose width only rich knows
            yield from (part.plain.rstrip() for part in Text(line).wrap(console, width, overflow="fold"))


def _broken(line: str, width: int) -> Iterator[str]:
    """Wrap a line of characters with known widths. A word longer than a line is cut, with the spaces behind it."""
    start = used = 0  # start and cells of the current line
    for word in _WORD.finditer(line):
        length = _cells(word[1])
        if length <= width - used:
            used += _cells(word[0])
            continue
        if word.start() > start:
            yield line[start : word.start()].rstrip()
            start = word.start()
        if length > width:
            for stop in _cuts(line, start, word.end(), width):
                yield line[start:stop].rstrip()
                start = stop
        used = _cells(line[start : word.end()])
    yield line[start:].rstrip()


def _cuts(line: str, start: int, end: int, width: int) -> Iterator[int]:
    """Yield the places where a word that is longer than a line is cut."""
    while (start := _fitting(line, start, end, width)) < end:
        yield start


def _fitting(line: str, start: int, end: int, width: int) -> int:
    """Return the end of one line: at least one character."""
    if line[start : start + width].isascii():
        return min(end, start + width)
    stop = start
    while stop < end and width > 0:
        some = line[stop : min(end, stop + max(1, width // 2))]  # fits, except for a wide character at the edge
        if _cells(some) > width:
            break
        width -= _cells(some)
        stop += len(some)
    return max(stop, start + 1)


def _cells(text: str) -> int:
    return len(text) if text.isascii() else 2 * len(text) - len(_WIDE.sub("", text))


def sentence(text: str, style: str = "") -> Indented:
    """A line that wraps if it is too long."""
    return Indented(Text(text, style=style), 0)


@dataclass(frozen=True, slots=True)
class Heading:
    """A blank line, and a title with a rule to the right edge."""

    title: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text()
        room = options.max_width - cell_len(self.title) - 1
        if room < 0:
            yield Text(self.title, style="bold")
            return
        rule = "─" * room
        yield Text.assemble((self.title, "bold"), " ", (rule, "dim"), no_wrap=True, overflow="fold")


def labelled(
    console: Console, label: str, said: Text, width: int, indent: int = 0, label_width: int = 8
) -> Iterator[Text]:
    """Yield a label and a text beside it that wraps under its first word."""
    start = indent + label_width
    for number, part in enumerate(said.wrap(console, max(NARROWEST, width - start), overflow="fold")):
        head = " " * indent + label.ljust(label_width) if number == 0 else " " * start
        line = Text.assemble((head, "dim"), part, no_wrap=True, overflow="fold")
        line.rstrip()
        yield line
