from __future__ import annotations

import pytest

from wiretape.model.wording import clip, count_text, duration_text, listed, numbered, plural, window


def test_a_number_with_its_noun() -> None:
    assert plural(1, "call") == "1 call"
    assert plural(0, "call") == "0 calls"
    assert plural(2, "entry", "entries") == "2 entries"
    assert plural(1234, "call") == "1,234 calls"


def test_a_clipped_text_is_no_longer_than_asked() -> None:
    assert clip("abcdef", 6) == "abcdef"
    assert clip("abcdefg", 6) == "abcde…"


def test_a_window_has_an_ellipsis_at_each_end_that_was_cut() -> None:
    assert window("abcdef", 0, 6) == "abcdef"
    assert window("abcdefg", 0, 6) == "abcde…"
    assert window("abcdefg", 2, 6) == "…cdefg"
    assert window("abcdefgh", 2, 6) == "…cdef…"


def test_a_long_list_is_cut() -> None:
    assert listed([1, 2, 3]) == "1, 2, 3"
    assert listed([1, 2, 3], 2) == "1, 2, …"
    assert numbered("call", [3]) == "call 3"
    assert numbered("call", [3, 4, 5], 2) == "calls 3, 4, …"


def test_unknown_is_a_question_mark_and_zero_is_zero() -> None:
    assert count_text(None) == "?"
    assert count_text(0) == "0"
    assert count_text(1234567) == "1,234,567"
    assert count_text(None, "unknown") == "unknown"


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (None, "?"),
        (0, "0 ms"),
        (999, "999 ms"),
        (1000, "1.0 s"),
        (59_949, "59.9 s"),
        (59_950, "1m 00s"),
        (61_000, "1m 01s"),
        (3_599_999, "1h 00m"),
        (7_260_000, "2h 01m"),
    ],
)
def test_durations(ms: int | None, words: str) -> None:
    assert duration_text(ms) == words
