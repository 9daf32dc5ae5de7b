from __future__ import annotations

from typing import Any

import orjson
import pytest

from wiretape.tape.format.patch import apply, diff, pointer, segments


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": True}, [{"op": "replace", "path": "/a", "value": True}]),
        ({"a": 1}, {"a": 1.0}, [{"op": "replace", "path": "/a", "value": 1.0}]),
        ({"a": 1}, {}, [{"op": "remove", "path": "/a"}]),
        ({"a": [1]}, {"a": [1, 2]}, [{"op": "add", "path": "/a/-", "value": 2}]),
        ({"a": [1, 2, 3]}, {"a": [1]}, [{"op": "remove", "path": "/a/1"}, {"op": "remove", "path": "/a/1"}]),
        ({"x/y~": 1}, {"x/y~": 2}, [{"op": "replace", "path": "/x~1y~0", "value": 2}]),
    ],
)
def test_small_differences(old: Any, new: Any, changes: list[Any]) -> None:
    assert diff(old, new) == (changes, None)
    assert orjson.dumps(apply(old, changes)) == orjson.dumps(new)


def test_a_patch_reaches_into_elements() -> None:
    long = "text " * 50
    old = {"messages": [{"content": [{"text": long, "cache_control": {"type": "ephemeral"}}]}, {"content": "b" * 99}]}
    new = {"messages": [{"content": [{"text": long}]}, {"content": "b" * 99}, {"content": "c"}]}
    changes, keys = diff(old, new)
    assert [(change["op"], change["path"]) for change in changes] == [
        ("remove", "/messages/0/content/0/cache_control"),
        ("add", "/messages/-"),
    ]
    assert keys is None
    assert apply(old, changes) == new


def test_a_window_that_slides_is_a_removal_and_an_addition() -> None:
    steps = [{"n": n, "text": "x" * 80} for n in range(20)]
    changes, _ = diff({"m": steps[:10]}, {"m": [steps[0], *steps[3:12]]})
    assert [(change["op"], change["path"]) for change in changes] == [
        ("remove", "/m/1"),
        ("remove", "/m/1"),
        ("add", "/m/-"),
        ("add", "/m/-"),
    ]


def test_a_message_put_in_between_is_one_addition() -> None:
    steps = [{"n": n, "text": "x" * 80} for n in range(9)]
    changes, _ = diff({"m": steps}, {"m": [*steps[:4], {"n": "new"}, *steps[4:]]})
    assert changes == [{"op": "add", "path": "/m/4", "value": {"n": "new"}}]


def test_an_object_whose_members_moved_is_replaced_whole() -> None:
    changes, keys = diff({"a": {"x": 1, "y": 2}}, {"a": {"y": 2, "x": 1}})
    assert changes == [{"op": "replace", "path": "/a", "value": {"y": 2, "x": 1}}]
    assert keys is None


def test_at_the_root_the_order_is_said() -> None:
    changes, keys = diff({"x": 1, "y": 2}, {"y": 2, "z": 3, "x": 1})
    assert changes == [{"op": "add", "path": "/z", "value": 3}]
    assert keys == ["y", "z", "x"]
    assert list(apply({"x": 1, "y": 2}, changes, keys)) == ["y", "z", "x"]


def test_applying_copies_the_path_and_nothing_else() -> None:
    old = {"messages": [{"a": 1}, {"b": [1]}], "tools": [{"t": 1}]}
    new = apply(old, [{"op": "add", "path": "/messages/1/b/-", "value": 2}])
    assert old == {"messages": [{"a": 1}, {"b": [1]}], "tools": [{"t": 1}]}
    assert new["messages"][0] is old["messages"][0]
    assert new["tools"] is old["tools"]
    assert new["messages"][1]["b"] == [1, 2]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ([{"op": "replace", "path": "/b", "value": 1}], r"patch\[0\] \(/b\) does not fit what it changes: 'b'"),
        ([{"op": "remove", "path": "/a/5"}], "the list has 2 elements"),
        ([{"op": "add", "path": "/a/-1", "value": 1}], "'-1' is no position in a list"),
        ([{"op": "add", "path": "/a/0/x", "value": 1}], "int has no members"),
        ([{"op": "move", "path": "/a"}], "unknown operation 'move'"),
        ([{"op": "add", "path": "a", "value": 1}], "'a' is no JSON pointer"),
        ([{"op": "remove", "path": ""}], "the root cannot be removed"),
        ([{"op": "add", "path": "/c"}], "value"),
    ],
)
def test_an_operation_that_does_not_fit_is_named(changes: list[Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        apply({"a": [1, 2]}, changes)


def test_the_order_must_name_all_members() -> None:
    with pytest.raises(ValueError, match="keys: not the members"):
        apply({"a": 1, "b": 2}, [], ["a"])


def test_pointers() -> None:
    assert pointer("a/b", 0, "c~d") == "/a~1b/0/c~0d"
    assert segments("/a~1b/0/c~0d") == ["a/b", "0", "c~d"]
    assert segments("") == []
