"""Equality of JSON values, and the numbering of equal ones."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wiretape.compare.canonical import UNKNOWN, EqualityClasses, canonical, same

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        ({"a": 1, "b": [2.0]}, {"b": [2], "a": 1.0}),
        ({"t": 1e16}, {"t": 10**16}),
        ("1.0", "1.0"),
    ],
)
def test_equal_values_have_one_spelling(one: Any, other: Any) -> None:
    assert canonical(one) == canonical(other)
    assert same(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (0, False),
        (1, "1"),
        ("1.0", "1"),
        (None, False),
        ([], {}),
        ({"a": None}, {}),
        (1.5, 1),
        ([1, 2], [2, 1]),
    ],
)
def test_types_are_strict(one: Any, other: Any) -> None:
    assert canonical(one) != canonical(other)
    assert not same(one, other)


def test_values_that_orjson_refuses_are_compared_too() -> None:
    assert canonical({"big": 2**70}) == canonical({"big": 2**70})
    assert canonical("\ud800") != canonical("\ud801")


@given(json_values, json_values)
def test_spelling_and_comparing_agree(one: Any, other: Any) -> None:
    assert (canonical(one) == canonical(other)) == same(one, other)


def test_a_placeholder_matches_any_value() -> None:
    assert same({"key": "[redacted:key:1]"}, {"key": "sk-something"})
    assert same("Bearer [redacted:key:1] ok", "Bearer abc ok")
    assert not same("Bearer [redacted:key:1] ok", "Bearer abc no")
    assert not same({"key": "[redacted:key:1]"}, {"key": 5})


def test_classes_number_equal_values_alike_and_unknown_ones_not_at_all() -> None:
    classes = EqualityClasses()
    first = classes.learn({"a": 1})
    assert classes.learn({"a": 1.0}) == first
    assert classes.learn({"a": 2}) != first
    assert classes.find({"a": 1}) == first
    assert classes.find({"a": 3}) == UNKNOWN


def test_classes_find_what_a_placeholder_stands_for() -> None:
    classes = EqualityClasses()
    known = classes.learn({"url": "https://x/?key=[redacted:key:1]"})
    assert classes.find({"url": "https://x/?key=abc"}) == known
    assert classes.find({"url": "https://y/?key=abc"}) == UNKNOWN
    assert classes.learn({"url": "https://x/?key=[redacted:key:2]"}) == known


def test_values_nested_deeper_than_a_stack_are_numbered_and_compared() -> None:
    def deep(leaf: str) -> Any:
        value: Any = leaf
        for level in range(5_000):
            value = {"b": value, "a": 1.0} if level % 2 else [value, "é"]
        return value

    one, same_one, other = deep("x"), deep("x"), deep("y")
    assert canonical(one) == canonical(same_one) != canonical(other)
    assert same(one, same_one)
    assert not same(one, other)
