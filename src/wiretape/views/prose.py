"""Running text for a terminal: indented and wrapped without trailing blanks, headings, and labelled sentences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

NARROWEST = 10  # a column of text is never made narrower than this


@dataclass(frozen=True, slots=True)
class Indented:
    """Text moved in; lines too long for the width go on below, moved in likewise."""

    text: Text
    indent: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self.text.wrap(console, max(NARROWEST, options.max_width - self.indent), overflow="fold"):
            moved = Text.assemble(" " * self.indent, line, no_wrap=True, overflow="fold")
            moved.rstrip()
            yield moved


def sentence(text: str, style: str = "") -> Indented:
    """A line that wraps where it must."""
    return Indented(Text(text, style=style), 0)


@dataclass(frozen=True, slots=True)
class Heading:
    """A blank line, then a title with a rule to the right edge."""

    title: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text()
        rule = "─" * max(0, options.max_width - cell_len(self.title) - 1)
        yield Text.assemble((self.title, "bold"), " ", (rule, "dim"), no_wrap=True, overflow="fold")


def labelled(
    console: Console, label: str, said: Text, width: int, indent: int = 0, label_width: int = 8
) -> Iterator[Text]:
    """`label   words that wrap, each further line under the first word`."""
    start = indent + label_width
    for number, part in enumerate(said.wrap(console, max(NARROWEST, width - start), overflow="fold")):
        head = " " * indent + label.ljust(label_width) if number == 0 else " " * start
        line = Text.assemble((head, "dim"), part, no_wrap=True, overflow="fold")
        line.rstrip()
        yield line
