"""Text from outside: clipped by cells, and never obeyed by a terminal."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from wiretape.errors import UsageError
from wiretape.views.printable import clip, json_text, name, one_line, visible

ANYTHING = st.text(alphabet=st.characters(exclude_categories=()), max_size=200)


def test_escape_sequences_are_shown_not_obeyed() -> None:
    assert visible("\x1b[31mred\x1b[0m") == r"\x1b[31mred\x1b[0m"
    assert visible("\x9b2J") == r"\x9b2J"
    assert visible("a\rb\x07\x00") == r"a\x0db\x07\x00"


def test_characters_that_reorder_a_line_are_shown() -> None:
    assert visible("abc\u202egnp.exe") == r"abc\u202egnp.exe"


def test_lone_surrogates_are_shown() -> None:
    assert visible("\ud83d") == r"\ud83d"


def test_ordinary_text_stays() -> None:
    assert visible("今天是 2026年\nline two\r\nthree — 👩‍👩‍👧 ☕") == "今天是 2026年\nline two\nthree — 👩‍👩‍👧 ☕"


@given(ANYTHING)
def test_visible_text_holds_nothing_a_terminal_obeys(text: str) -> None:
    shown = visible(text)
    assert not {c for c in shown if unicodedata.category(c) in ("Cc", "Cs") and c != "\n"}
    shown.encode()


def test_clip_counts_wide_characters_as_two_cells() -> None:
    assert clip("帮我约明天下午", 14) == "帮我约明天下午"
    assert clip("帮我约明天下午", 13) == "帮我约明天下…"
    assert clip("帮我约明天下午", 12) == "帮我约明天…"
    assert clip("帮", 1) == "…"
    assert clip("帮", 0) == ""


@given(ANYTHING, st.integers(0, 40))
def test_clipped_text_is_one_line_and_fits(text: str, width: int) -> None:
    clipped = clip(text, width)
    assert cell_len(clipped) <= width
    assert "\n" not in clipped


def test_clip_of_a_megabyte_is_a_prefix() -> None:
    assert clip("日程 " * 300_000, 10) == "日程 日程…"


def test_one_line_joins_lines() -> None:
    assert one_line("a\n\n  b\tc") == "a b c"


def test_a_value_nested_too_deeply_is_refused_in_words() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(UsageError, match="nested too deeply"):
        json_text(deep)


def test_a_name_of_any_length_fits_a_table() -> None:
    assert cell_len(name("m" * 10_000)) == 60


@given(
    st.recursive(st.none() | ANYTHING | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(ANYTHING, inner))
)
def test_json_text_is_the_same_value_and_safe(value: object) -> None:
    text = json_text(value)
    assert json.loads(text) == value
    assert visible(text) == text
    text.encode()
