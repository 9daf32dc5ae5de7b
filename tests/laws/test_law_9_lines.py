"""Law 9 for lines: wrapping and cutting any text ends, keeps every character, and is linear."""

from __future__ import annotations

import io
from collections.abc import Callable
from itertools import islice

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text
from tests.support.costs import calls
from tests.support.large import MARKS

from wiretape.views.printable import clip, graphemes, one_line, visible
from wiretape.views.prose import Heading, Indented, labelled, wrapped
from wiretape.views.replay.rows import CommandRow, Compared, Words
from wiretape.views.rows import TableColumn, fit, row_lines, wrap_name
from wiretape.views.terminal import make_console

CONSOLE = make_console(file=io.StringIO())
PIECES = [
    "a",
    "bc",
    " ",
    "   ",
    "└ ",
    "-",
    "_",
    "/",
    ".",
    "1",
    "\t",
    "\n",
    "\r",
    "\x00",
    "\x1b[31m",
    "\u2028",
    "x" * 17,
]
PIECES += ["日", "本", "é", "e\u0301", "\u0301", "\u200b", "\u200d", "\ufe0f", "👩\u200d🚀", "🇨🇳", "語" * 9]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=30).map("".join) | st.text(max_size=20)
WIDTHS = st.integers(0, 20)


def ink(text: str) -> str:
    """The characters that a line must not lose: all but blanks."""
    return "".join(text.split())


@given(TEXTS, WIDTHS)
@example("   日a日_本 ", 7)
@example("日本語", 0)
def test_a_name_is_wrapped_at_any_width(text: str, width: int) -> None:
    text = one_line(text)
    lines = wrap_name(Text(text), width)
    assert ink("".join(line.plain for line in lines)) == ink(text)
    assert all(line.cell_len <= width or len(graphemes(line.plain.lstrip())) <= 1 for line in lines)


@given(TEXTS, WIDTHS)
@example("日本語", 1)
@example("日本語", 0)
@example("a日本語", 1)
@example("a𠀀 b", 1)
def test_text_is_wrapped_at_any_width(text: str, width: int) -> None:
    text = visible(text)
    lines = list(islice(wrapped(CONSOLE, text, width), 3 * len(text) + 3))
    assert ink("".join(lines)) == ink(text)
    assert all(cell_len(line) <= width or len(graphemes(line)) <= 1 for line in lines)


@given(TEXTS, st.integers(-3, 20))
def test_a_clipped_text_fits(text: str, width: int) -> None:
    clipped = clip(text, width)
    assert cell_len(clipped) <= max(0, width)
    assert clipped == one_line(text) or ink(clipped).endswith("…") or width <= 0


@given(TEXTS, TEXTS, WIDTHS)
def test_two_values_are_compared_at_any_width(recorded: str, live: str, width: int) -> None:
    lines = list(Compared(recorded, live, 2).lines(CONSOLE, width))
    assert len(lines) >= 2


@given(st.lists(TEXTS.map(one_line), min_size=2, max_size=2), WIDTHS)
def test_a_row_is_drawn_at_any_width(cells: list[str], width: int) -> None:
    columns, row = (
        [TableColumn("name", flexible=True, least=1), TableColumn("n", right=True)],
        [Text(cell) for cell in cells],
    )
    lines = list(row_lines(columns, fit(columns, [row], width), row))
    assert all(ink(cell) in ink("".join(line.plain for line in lines)) for cell in cells if len(lines) == 1)


# -- the cost ----------------------------------------------------------------------------------------------------------


def _console(width: int) -> Callable[[object], None]:
    return lambda view: make_console(file=io.StringIO()).print(view, width=width)


DRAWN: dict[str, Callable[[str], object]] = {
    "wrap_name": lambda text: wrap_name(Text(one_line(text)), 20),
    "wrap_name of a branch": lambda text: wrap_name(Text("  └ " + one_line(text)), 20),
    "row": lambda text: _drawn_row(one_line(text)),
    "wrapped": lambda text: list(wrapped(CONSOLE, visible(text), 80)),
    "wrapped to one cell": lambda text: list(wrapped(CONSOLE, visible(text), 1)),
    "indented": lambda text: _console(80)(Indented(Text(visible(text)), 4)),
    "indented, styled": lambda text: _console(80)(Indented(Text.assemble(("a", "bold"), visible(text)), 4)),
    "heading": lambda text: _console(80)(Heading(one_line(text))),
    "labelled": lambda text: list(labelled(CONSOLE, "label", Text(visible(text)), 80)),
    "clip": lambda text: clip(text, 80),
    "clip to a long line": lambda text: clip(text, len(text) // 2),
    "words": lambda text: list(Words(text).lines(CONSOLE, 60)),
    "command": lambda text: list(CommandRow("why", text).lines(CONSOLE, 60)),
    "compared at the start": lambda text: list(Compared(text, "other " + text, 2).lines(CONSOLE, 60)),
    "compared at the end": lambda text: list(Compared(text + "a", text + "b", 2).lines(CONSOLE, 60)),
    "visible": visible,
    "one_line": one_line,
}


def _drawn_row(text: str) -> None:
    columns, row = [TableColumn("name", flexible=True), TableColumn("n", right=True)], [Text(text), Text("1")]
    assert list(row_lines(columns, fit(columns, [row], 60), row))


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("draw", DRAWN)
def test_four_times_the_text_costs_four_times_the_work(draw: str, mark: str) -> None:
    """Work is counted in calls of functions; a constant part is allowed for."""

    def cost(size: int) -> int:
        text = (MARKS[mark] * size)[:size]
        return calls(lambda: DRAWN[draw](text))

    cost(10)  # modules and caches that are loaded once
    few, many = cost(1_000), cost(4_000)
    assert many < 5 * few + 500
