from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wiretape.analyze.moved import moved

UUIDS = ("0b9c2a10-7d0e-4a55-9c2b-7f0e9d3c1a22", "5d1e8f77-1c34-4b0a-8a3f-2f6b7c8d9e00")


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("a clock", "15时05分30秒", "15时23分47秒"),
        ("a clock", "15:05:30", "15:23:47"),
        ("a clock", "2026-02-28T15:05:30Z", "2026-02-28T15:23:47Z"),
        ("a clock", "9:05 AM", "9:06 AM"),
        ("a date", "2026年02月28日", "2026年03月01日"),
        ("a date", "2026-02-28", "2026-03-01"),
        ("a date", "Feb 28, 2026", "Mar 1, 2026"),
        ("a weekday", "星期六", "星期日"),
        ("a weekday", "Saturday", "Sunday"),
        ("a uuid", *UUIDS),
        ("a unix time", "1772262330", "1772263427"),
        ("a temporary path", "/tmp/run-a81/x.txt", "/tmp/run-b77/x.txt"),
        ("a nonce", "cch=ab12c", "cch=9f00d"),
        ("a nonce", "k3J9xQ2mLp", "k3J9zz8AbC"),
        ("a number", "17", "18"),
        ("other text", "morning", "evening"),
    ],
)
def test_what_kind_of_thing_changed_and_both_values(kind: str, before: str, after: str) -> None:
    found = moved(f"Today is {before}  and so on", f"Today is {after}  and so on")
    assert found.kind == kind
    if kind == "other text":
        assert found.before.startswith(before)
        assert found.after.startswith(after)
    elif kind == "a nonce" and "=" in before:
        assert (found.before, found.after) == ("ab12c", "9f00d")
    else:
        assert (found.before, found.after) == (before, after)


def test_the_character_counts_from_nought() -> None:
    assert moved("今天是 15时05分", "今天是 15时23分").character == 7


def test_only_the_neighbourhood_of_a_long_text_is_read() -> None:
    found = moved("x" * 100_000 + "12:30" + "y" * 100_000, "x" * 100_000 + "12:31" + "y" * 100_000)
    assert (found.character, found.before, found.after) == (100_004, "12:30", "12:31")


def test_text_that_was_only_added() -> None:
    found = moved("all is well", "all is well, and more")
    assert (found.kind, found.character, found.before) == ("other text", 11, "well")


@given(st.text(), st.text())
def test_any_two_texts_differ_somewhere(old: str, new: str) -> None:
    if old != new:
        found = moved(old, new)
        assert old[: found.character] == new[: found.character]
        assert old[found.character : found.character + 1] != new[found.character : found.character + 1]
