"""The bar neither invents nor hides a cache hit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wiretape.views.figures import CACHED, FRESH, UNSAID, usage_bar


def test_length_is_the_input_beside_the_longest_and_the_full_part_is_cached() -> None:
    assert usage_bar(462, 256, 462).plain == CACHED * 7 + FRESH * 5
    assert usage_bar(231, 0, 462).plain == FRESH * 6


def test_what_the_wire_does_not_say_is_no_miss() -> None:
    assert usage_bar(462, None, 462).plain == UNSAID * 12
    assert usage_bar(None, None, 462).plain == ""


@given(st.integers(1, 10**7), st.integers(0, 10**7), st.integers(1, 10**7))
def test_any_hit_shows_and_any_miss_shows(total: int, cached: int, most: int) -> None:
    bar = usage_bar(total, cached, max(most, total)).plain
    assert 1 <= len(bar) <= 12
    assert (CACHED in bar) == (cached > 0)
    if len(bar) > 1:
        assert (FRESH in bar) == (cached < total)
