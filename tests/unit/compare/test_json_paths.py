"""Values inside a body, by the paths that wiretape prints."""

from __future__ import annotations

from typing import Any

import pytest

from wiretape.compare.json_paths import steps, with_value
from wiretape.errors import UsageError

BODY = {"model": "m", "messages": [{"role": "system", "content": "Be kind."}, {"content": [{"text": "Hi"}]}], "a.b": 1}


@pytest.mark.parametrize(
    ("path", "way"),
    [
        ("model", ["model"]),
        ("messages[0].content", ["messages", 0, "content"]),
        ("messages[-1].content[0].text", ["messages", -1, "content", 0, "text"]),
        ('["a.b"]', ["a.b"]),
    ],
)
def test_paths(path: str, way: list[str | int]) -> None:
    assert steps(path) == way


def test_a_value_is_replaced_and_nothing_else_changes() -> None:
    made: Any = with_value(BODY, "messages[-1].content[0].text", "Bye")
    assert made["messages"][1]["content"][0]["text"] == "Bye"
    assert BODY["messages"][1]["content"][0]["text"] == "Hi"  # type: ignore[index]
    assert made["messages"][0] is BODY["messages"][0]  # type: ignore[index]
    assert list(made) == list(BODY)


def test_a_new_member() -> None:
    assert with_value({"model": "m"}, "temperature", 0.5) == {"model": "m", "temperature": 0.5}


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("", "names what is to change"),
        ("messages[x]", "is no path"),
        ("messages[2].content", "not in a list of 2"),
        ("nothing.there", "an object with model"),
        ("model.name", "a value without parts"),
    ],
)
def test_a_path_that_does_not_exist_is_an_error_that_names_its_last_part(path: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        with_value(BODY, path, 1)
