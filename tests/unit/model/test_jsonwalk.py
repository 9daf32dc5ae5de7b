"""JSON values as deep as they like are walked, made anew and written, with nothing lost and nothing copied in vain."""

from __future__ import annotations

import json
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from wiretape.model.jsonwalk import rebuilt, spelled, strings, text_of

DEEP = 20_000
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


def nested(levels: int, leaf: Any) -> Any:
    for level in range(levels):
        leaf = {"in": leaf} if level % 2 else [leaf]
    return leaf


def louder(name: str | None, leaf: Any) -> Any:
    return leaf.upper() if isinstance(leaf, str) and leaf.islower() and name != "quiet" else leaf


def test_strings_come_in_their_order() -> None:
    assert list(strings({"a": ["x", {"b": "y", "c": 1}], "d": "z"})) == ["x", "y", "z"]
    assert list(strings("alone")) == ["alone"]
    assert list(strings(nested(DEEP, "far in"))) == ["far in"]


def test_changed_parts_are_new_and_unchanged_parts_the_same_objects() -> None:
    value = {"said": ["x", 1, None], "quiet": "y", "kept": {"n": [True]}}
    made = rebuilt(value, louder)
    assert made == {"said": ["X", 1, None], "quiet": "y", "kept": {"n": [True]}}
    assert made["kept"] is value["kept"]
    assert value["said"] == ["x", 1, None]
    assert rebuilt(made, louder) is made


def test_members_can_be_left_out_and_what_was_made_changed_again() -> None:
    value = {"rows": ["b", "a"], "gone": "x", "in": [{"gone": 1, "rows": "c"}]}

    def kept(members: dict[str, Any]) -> dict[str, Any]:
        return {name: member for name, member in members.items() if name != "gone"}

    def closed(name: str | None, part: Any) -> Any:
        return sorted(part) if name == "rows" else part

    assert rebuilt(value, louder, kept, closed) == {"rows": ["A", "B"], "in": [{"rows": "C"}]}


@settings(max_examples=30)
@given(json_values)
def test_nothing_is_lost(value: Any) -> None:
    assert rebuilt(value, lambda name, leaf: leaf) == value
    assert json.loads("".join(spelled(value))) == value
    assert text_of(value) == orjson.dumps(value).decode()
    ordered = "".join(spelled(value, ordered=True))
    assert ordered == json.dumps(value, sort_keys=True, separators=(",", ":"))


def test_depth_and_what_orjson_refuses_are_written() -> None:
    assert text_of(nested(400, 2**70)) == '{"in":[' * 200 + str(2**70) + "]}" * 200
    assert text_of(rebuilt(nested(DEEP, "x"), louder)) == '{"in":[' * (DEEP // 2) + '"X"' + "]}" * (DEEP // 2)
