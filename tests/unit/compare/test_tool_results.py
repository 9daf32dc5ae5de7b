"""Recorded tool results are found by arguments: among many, without comparing each."""

from __future__ import annotations

import pytest

from wiretape.compare import tool_results
from wiretape.compare.difference import Tier
from wiretape.compare.mask import Masker
from wiretape.compare.tool_results import RecordedToolResult, ToolMatch, ToolResults


@pytest.mark.parametrize(("clock", "tier"), [("12:30", Tier.EXACT), ("13:45", Tier.MASKED)])
def test_few_of_many_calls_are_compared(clock: str, tier: Tier, monkeypatch: pytest.MonkeyPatch) -> None:
    book = ToolResults((RecordedToolResult("t", {"q": f"{n} at 12:30"}, f"r{n}") for n in range(30)), Masker())
    compared: list[object] = []
    same = tool_results.same
    monkeypatch.setattr(tool_results, "same", lambda one, other: compared.append(one) or same(one, other))
    for n in range(30):
        found = book.take("t", {"q": f"{n} at {clock}"})
        assert isinstance(found, ToolMatch)
        assert (found.result.text, found.tier) == (f"r{n}", tier)
    assert len(compared) <= 30


def test_a_placeholder_matches_anything_and_the_first_match_is_given() -> None:
    result = [("[redacted:key:1]", "first"), ("b", "second"), ("[redacted:key:2]", "third"), ("b", "fourth")]
    book = ToolResults([RecordedToolResult("t", {"q": q}, text) for q, text in result], Masker())
    taken = [book.take("t", {"q": "b"}) for _ in range(5)]
    assert [one.result.text for one in taken if isinstance(one, ToolMatch)] == ["first", "second", "third", "fourth"]
    assert not isinstance(taken[4], ToolMatch)
