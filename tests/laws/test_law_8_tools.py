"""Law 8 for tools: the answer of each call does not depend on the order of calls."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from wiretape.compare.mask import Masker
from wiretape.compare.tool_results import RecordedToolResult, ToolMatch, ToolNotFound, ToolResults

ASKED = st.tuples(st.sampled_from(["search", "weather"]), st.dictionaries(st.sampled_from("ab"), st.integers(0, 2)))


@given(st.lists(ASKED, max_size=12).flatmap(lambda asked: st.tuples(st.just(asked), st.permutations(asked))))
def test_equal_calls_are_answered_in_recorded_order(
    calls: tuple[list[tuple[str, dict[str, Any]]], list[tuple[str, dict[str, Any]]]],
) -> None:
    recorded, live = calls
    result = [RecordedToolResult(name, arguments, str(number)) for number, (name, arguments) in enumerate(recorded)]
    expected = defaultdict(list)
    for one in result:
        expected[one.name, str(sorted(one.arguments.items()))].append(one.text)
    book = ToolResults(result, Masker())
    given = defaultdict(list)
    for name, arguments in live:
        found = book.take(name, arguments)
        assert isinstance(found, ToolMatch)
        given[name, str(sorted(arguments.items()))].append(found.result.text)
    assert given == expected
    for name, arguments in live:
        again = book.take(name, arguments)
        assert isinstance(again, ToolNotFound)
        assert again.played
