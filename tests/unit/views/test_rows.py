"""Columns line up by cells, share a width, and break names at their joints."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from wiretape.views.rows import TableColumn, fit, header_line, row_lines, wrap_name

COLUMNS = [TableColumn("agent", flexible=True), TableColumn("in", right=True), TableColumn("time", right=True)]


def lines(row: list[Text], width: int) -> list[str]:
    shape = fit(COLUMNS, [row], width)
    return [line.plain for line in row_lines(COLUMNS, shape, row)]


def test_wide_characters_take_two_cells() -> None:
    rows = [[Text("日历助手"), Text("347"), Text("1.2 s")], [Text("calendar"), Text("9"), Text("905 ms")]]
    shape = fit(COLUMNS, rows, 80)
    assert header_line(COLUMNS, shape).plain == "agent      in    time"
    assert [line.plain for row in rows for line in row_lines(COLUMNS, shape, row)] == [
        "日历助手  347   1.2 s",
        "calendar    9  905 ms",
    ]


def test_gaps_give_way_before_names_do() -> None:
    row = [Text("calendar-agent"), Text("347"), Text("1.2 s")]
    assert lines(row, 24) == ["calendar-agent 347 1.2 s"]


def test_a_name_too_long_goes_on_below() -> None:
    row = [Text("claude-sonnet-4-5-20250929"), Text("347"), Text("1.2 s")]
    assert lines(row, 28) == ["claude-sonnet-4-5- 347 1.2 s", "20250929"]


def test_it_says_when_nothing_more_gives_way() -> None:
    assert not fit(COLUMNS, [[Text("x" * 30), Text("1" * 20), Text("1.2 s")]], 30).fits


@pytest.mark.parametrize(
    ("text", "width", "parts"),
    [
        ("deepseek-flash", 20, ["deepseek-flash"]),
        ("deepseek-flash", 10, ["deepseek-", "flash"]),
        ("create_calendar_event", 12, ["create_", "calendar_", "event"]),
        ("豆包·1.6·极致速度", 9, ["豆包·1.6·", "极致速度"]),
        ("abcdefgh", 3, ["abc", "def", "gh"]),
        ("日", 1, ["日"]),
        ("  └ general-purpose", 12, ["  └ general-", "    purpose"]),
    ],
)
def test_names_break_at_their_joints(text: str, width: int, parts: list[str]) -> None:
    assert [part.plain for part in wrap_name(Text(text), width)] == parts


@given(st.text(alphabet="ab-_日本 ", max_size=60), st.integers(2, 20))
def test_wrapping_a_name_loses_nothing_and_fits(text: str, width: int) -> None:
    parts = [part.plain for part in wrap_name(Text(text), width)]
    assert "".join(parts).replace(" ", "") == text.replace(" ", "")
    assert all(cell_len(part) <= width for part in parts)
