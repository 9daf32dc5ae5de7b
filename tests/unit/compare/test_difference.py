"""Differences have a path and both values."""

from __future__ import annotations

from wiretape.compare.difference import ABSENT, Difference, Differences, differences, differences_of_queries
from wiretape.compare.excerpt import excerpts


def test_each_difference_has_its_path_and_both_values() -> None:
    recorded = {"model": "m", "input": [{"output": "15:00"}, {"a": 1}], "gone": True}
    live = {"model": "m", "input": [{"output": "16:00"}, {"a": 1.0}, "more"], "odd key": None}
    assert list(differences(recorded, live)) == [
        Difference("input[0].output", "15:00", "16:00"),
        Difference("input[2]", ABSENT, "more"),
        Difference("gone", True, ABSENT),
        Difference('["odd key"]', ABSENT, None),
    ]


def test_a_body_that_is_not_an_object_differs_as_a_whole() -> None:
    assert list(differences("a", "b")) == [Difference("body", "a", "b")]


def test_a_difference_of_the_same_objects_is_reported_once() -> None:
    compare = Differences()
    one, other = {"a": 1}, {"a": 2}
    assert [d.where for d in compare.between({"m": [one]}, {"m": [other]})] == ["m[0].a"]
    longer = {"m": [one, {"b": 1}]}, {"m": [other, {"b": 2}]}
    assert [d.where for d in compare.between(*longer)] == ["m[1].b"]
    assert [d.where for d in compare.between({"m": [{"c": 1}, one]}, {"m": [{"c": 1}, other]})] == []
    assert [d.where for d in compare.between({"m": [{"a": 1}]}, {"m": [{"a": 2}]})] == ["m[0].a"]


def test_members_on_one_side_only_are_differences() -> None:
    found = list(Differences().between({"a": 1, "m": [{}]}, {"b": 2, "m": [{}, {}]}))
    assert {d.where: (d.recorded, d.live) for d in found} == {
        "a": (1, ABSENT),
        "b": (ABSENT, 2),
        "m[1]": (ABSENT, {}),
    }


def test_excerpts_show_long_values_around_their_difference() -> None:
    text = "x" * 500
    recorded, live = excerpts(Difference("p", f"{text}ONE{text}", f"{text}TWO{text}"), width=40)
    assert "ONE" in recorded
    assert "TWO" in live
    assert len(recorded) == len(live) == 40
    assert recorded.startswith("…")
    assert recorded.endswith("…")


def test_excerpts_are_on_one_line() -> None:
    assert excerpts(Difference("p", "a\nb", ABSENT)) == ("a\\nb", "(nothing)")
    assert excerpts(Difference("p", {"a": [1]}, None)) == ('{"a":[1]}', "null")


def test_queries_differ_by_parameter() -> None:
    assert list(differences_of_queries("api-version=1&x=a&gone=", "x=b&api-version=1&new=1&new=2")) == [
        Difference("query x", "a", "b"),
        Difference("query gone", "", ABSENT),
        Difference("query new", ABSENT, ["1", "2"]),
    ]


def test_queries_that_are_alike_but_for_their_order_differ_as_a_whole() -> None:
    assert list(differences_of_queries("a=1&b=2", "b=2&a=1")) == [Difference("query", "a=1&b=2", "b=2&a=1")]
    assert list(differences_of_queries("a=1", "a=1")) == []


def test_values_nested_deeper_than_a_stack_are_compared() -> None:
    recorded: object = "x"
    live: object = "y"
    for _ in range(2_000):
        recorded, live = {"a": recorded}, {"a": live}
    assert list(differences(recorded, live)) == [Difference(".".join("a" * 2_000), "x", "y")]
