"""Running text wraps as rich wraps it, and takes no longer than its size is worth."""

from __future__ import annotations

import io
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from wiretape.views.prose import Indented
from wiretape.views.terminal import make_console

PIECES = st.sampled_from(
    [
        "a",
        "bc",
        " ",
        "   ",
        "\n",
        "word",
        "x" * 17,
        "y" * 40,
        "日本",
        "é",
        "é" * 45,
        "語" * 20,
        "日x" * 30,
        "—",
        "e\u0301",
        "\t",
        "👩‍👩‍👧",
        "\x0b",
    ]
)


def drawn(text: Text, indent: int) -> str:
    written = io.StringIO()
    make_console(file=written).print(Indented(text, indent))
    return written.getvalue()


@given(st.lists(PIECES, max_size=30).map("".join), st.sampled_from([0, 4, 60, 68, 75]))
def test_text_of_one_style_breaks_where_styled_text_does(text: str, indent: int) -> None:
    spans = Text(text)
    spans.stylize("bold", 0, 1)
    assert drawn(Text(text), indent) == drawn(spans, indent) or not text
    assert drawn(Text(text, style="dim"), indent) == drawn(Text(text), indent)


def test_long_words_are_cut_at_the_edge() -> None:
    assert drawn(Text("see " + "x" * 170 + " end"), 4) == "\n".join(
        ["    see", "    " + "x" * 76, "    " + "x" * 76, "    " + "x" * 18 + " end", ""]
    )


def test_a_style_is_put_on_the_words_and_not_on_the_indent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert drawn(Text("one\n\ntwo", style="italic"), 2) == "  \x1b[3mone\x1b[0m\n\n  \x1b[3mtwo\x1b[0m\n"


@pytest.mark.parametrize(
    "text",
    ["x" * 3_000_000, "lorem ipsum dolor " * 166_000, "日本語です。" * 500_000],
    ids=["one word", "words", "wide"],
)
def test_megabytes_cost_a_few_walks_over_their_characters(text: str) -> None:
    began = time.process_time()
    assert sum(character == "\0" for character in text) == 0
    walked = time.process_time() - began  # what this machine takes, as busy as it is
    began = time.process_time()
    shown = drawn(Text(text), 2)
    assert time.process_time() - began < 8 * walked  # one or two where nothing else runs
    assert "".join(shown.split()) == "".join(text.split())
