from __future__ import annotations

import pytest

from wiretape.runs.dataflow import carried, overlap


def test_what_arguments_carry() -> None:
    text = '{"a": " x ", "b": ["y", {"c": "z"}], "n": 1, "t": true, "empty": ""}'
    assert carried(text) == (text, "x", "y", "z")
    assert carried('"just a string"') == ('"just a string"', "just a string")
    assert carried("no json") == ("no json",)
    assert carried("") == ("",)


@pytest.mark.parametrize(
    ("value", "text", "characters"),
    [
        ("look at monday", "look at monday", 14),
        ("look at monday", "please look at monday", 14),
        ("please look at monday", "look at monday", 14),
        ("成都", "请问成都今天的天气怎么样，适合出门吗", 0),  # too little of it
        ("a task of more than twenty", "x" * 500 + "a task of more than twenty", 26),
        ("one thing", "another thing", 0),
        ("", "", 0),
    ],
)
def test_the_overlap_of_two_texts(value: str, text: str, characters: int) -> None:
    assert overlap(value, text) == characters
