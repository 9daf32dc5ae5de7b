"""The proof of the cache diagnosis fails with fewer correct predictions or more reported misses."""

from __future__ import annotations

import json
from collections import Counter

from tests.corpus.caches import FIGURES, misses, table
from tests.support.caching import asked, history, tokens

from wiretape.analyze.cache.diagnosis import diagnose
from wiretape.analyze.cache.report import CacheCall
from wiretape.runs.run import build_run


def calls(cached: int | None) -> list[CacheCall]:
    return diagnose(build_run([asked(1, history(1)), asked(2, history(2), cached=cached)])).calls


def test_predicted_cache_hits_are_compared_with_reported_ones() -> None:
    served = tokens(history(1)) // 128 * 128
    assert table(calls(served))["openai"] == Counter(calls=1, served=1, equal=1, predicted=served, reported=served)
    assert table(calls(served + 128))["openai"]["more"] == 1
    assert table(calls(0))["openai"] == Counter(calls=1, routed_elsewhere=1, less=1, predicted=served)


def test_unreported_counts_prove_nothing() -> None:
    assert table(calls(None)) == {}


def test_fewer_than_the_figures_fails() -> None:
    kept = {"openai": {"calls": 1, "equal": 1, "served": 1}}
    assert list(misses(kept, {"openai": Counter(calls=1, equal=1, served=1)})) == []
    found = list(misses(kept, {"openai": Counter(calls=1, less=1, broken=1)}))
    assert found == [
        "openai: equal 0, was 1",
        "openai: served 0, was 1",
        "openai: less 1, was 0",
        "openai: broken 1, was 0",
    ]


def test_the_figures_are_those_of_many_providers() -> None:
    figures = json.loads(FIGURES.read_text(encoding="utf-8"))
    assert {"anthropic", "bedrock", "openai", "deepseek", "gemini", "xai", "mistral"} <= figures.keys()
    assert sum(row.get("served", 0) for row in figures.values()) > 60
