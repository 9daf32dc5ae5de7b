"""The proof on recorded traffic fails below a figure, above the reported problems, or without a reason."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.corpus.proof import FIGURES, misses, reason, table
from tests.support.proving import NAMED, Findings
from tests.support.told_usage import Told, told_usage

FIGURES_MADE: dict[str, Any] = {
    "archives": {"a": {"files": 2, "calls": 3, "unknown": {"new_thing": 2}}},
    "reasons": [{"in": "unknown", "like": "new_*", "because": "it is new"}],
}


def findings(calls: int = 3, **unknown: int) -> Findings:
    found = Findings()
    found.numbers.update({"files": 2, "calls": calls})
    found.named["unknown"].update(unknown)
    return found


@pytest.mark.parametrize(
    ("found", "missed"),
    [
        (findings(new_thing=2), []),
        (findings(calls=4, new_thing=1), []),
        (findings(calls=2), ["a: calls 2, was 3"]),
        (findings(new_thing=3), ["a: unknown new_thing: 3, was 2"]),
        (findings(other=1), ["a: unknown other: 1, was 0"]),
    ],
)
def test_changed_figures_fail(found: Findings, missed: list[str]) -> None:
    assert list(misses(FIGURES_MADE, {"a": found})) == missed


def test_reported_problems_need_a_reason() -> None:
    without = {**FIGURES_MADE, "reasons": []}
    said = ["a: unknown new_thing: figures.json gives no reason for it"]
    assert list(misses(without, {"a": findings(new_thing=2)})) == said


def test_figures_and_reasons_match() -> None:
    figures = json.loads(FIGURES.read_text())
    named = [(sort, name) for kept in figures["archives"].values() for sort in NAMED for name in kept.get(sort, {})]
    assert [one for one in named if reason(figures, *one) is None] == []
    for told in figures["reasons"]:
        alone = {"reasons": [told]}
        assert any(reason(alone, *one) for one in named), told
    for archive, kept in figures["archives"].items():
        assert kept["recognised"] == kept["model_shaped"], archive
        assert kept["usage_equal"] == kept["usage_told"], archive
        assert kept.get("twins_equal") == kept.get("twins"), archive


def test_the_table_fits_80_columns() -> None:
    found = Findings()
    found.numbers.update({"files": 1234, "exchanges": 4567, "recognised": 998, "model_shaped": 4567})
    assert {len(line) for line in table({"someone+a-repository-with-a-long-name": found, "b": found})} == {80}


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b'{"usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}}', Told(9, None, None, 3, None)),
        (
            (
                b'data: {"usage": null}\n\ndata: {"usage": {"input_tokens": 9, "cache_read_input_tokens": 4}}\n\n'
                b'data: {"usage": {"output_tokens": 3}}\n\n'
            ),
            Told(13, 4, None, 3, None),
        ),
        (
            b'{"usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 2, "thoughtsTokenCount": 3}}',
            Told(9, None, None, 5, 3),
        ),
        (
            b'{"usage": {"inputTokens": 9, "outputTokens": 2, "totalTokens": 15, "cacheReadInputTokens": 4}}',
            Told(13, 4, None, 2, None),
        ),
        (b'{"message": {}, "prompt_eval_count": 9, "eval_count": 2}\n', Told(9, None, None, 2, None)),
        (b'{"choices": []}', None),
        (b"<html>", None),
    ],
)
def test_usage_is_read_from_raw_bytes(body: bytes, told: Told | None) -> None:
    assert told_usage(body, {}) == told
