"""Numbers as words: unknown is never 0."""

from __future__ import annotations

import pytest

from wiretape.analyze.report import CostSum, UsageSum
from wiretape.views.figures import (
    long_cost,
    long_sum,
    money,
    percent,
    short_cost,
    short_sum,
    size,
)


@pytest.mark.parametrize(
    ("usage", "short", "long"),
    [
        (UsageSum(input=809, unknown_calls=2, unknown={"input": 2}), "809 +2?", "809 + 2 calls unknown"),
        (UsageSum(input=809, unknown_calls=1), "809 +1?", "809 + 1 call unknown"),
        (UsageSum(input=809, unknown_calls=0, unknown={"cached": 3}), "809", "809"),
        (UsageSum(input=0, unknown_calls=0), "0", "0"),
        (UsageSum(unknown_calls=4), "?", "unknown"),
    ],
)
def test_sums_say_what_they_do_not_know(usage: UsageSum, short: str, long: str) -> None:
    assert short_sum(usage, "input", 4) == short
    assert long_sum(usage, "input", 4) == long


@pytest.mark.parametrize(
    ("rate", "words"),
    [(None, "unknown"), (0.0, "0%"), (1.0, "100%"), (0.554, "55%"), (0.004, "<1%"), (0.9996, ">99%")],
)
def test_rates_are_not_rounded_into_none_or_all(rate: float | None, words: str) -> None:
    assert percent(rate) == words


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (123_456, "123 kB"), (999_600, "1.0 MB"), (2_500_000_000, "2.5 GB")],
)
def test_sizes(number: int, words: str) -> None:
    assert size(number) == words


@pytest.mark.parametrize(
    ("usd", "said"),
    [
        (None, "?"),
        (0, "$0.00"),
        (1234.5, "$1,234.50"),
        (0.999, "$1.00"),
        (0.123, "$0.12"),
        (0.0123, "$0.012"),
        (0.00031, "$0.00031"),
        (0.0000000012, "$0.0000000012"),
    ],
)
def test_small_sums_of_money_keep_two_digits(usd: float | None, said: str) -> None:
    assert money(usd) == said


@pytest.mark.parametrize(
    ("cost", "short", "long"),
    [
        (CostSum(), "?", "unknown"),
        (CostSum(usd=0.12), "$0.12", "$0.12"),
        (CostSum(usd=0.12, unknown_calls=2), "$0.12 +2?", "$0.12 + 2 calls unknown"),
        (CostSum(usd=0.12, estimated_calls=1), "≈$0.12", "$0.12 (1 call estimated)"),
    ],
)
def test_costs_say_what_they_do_not_know(cost: CostSum, short: str, long: str) -> None:
    assert (short_cost(cost), long_cost(cost)) == (short, long)
