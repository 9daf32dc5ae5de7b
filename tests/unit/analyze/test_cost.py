from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from tests.support.calls import make_call, user

from wiretape.analyze.cost import Cost, cost_of_uncached, cost_sum, pricing, reported_cost
from wiretape.analyze.stats import stats
from wiretape.model.call import ModelCall, Usage
from wiretape.runs.run import build_run


class Dollar:
    """A dollar for each token that no cache served, a dime for each that one did."""

    name = "by the dollar"

    def __call__(self, call: ModelCall) -> Cost | None:
        usage = call.usage
        if call.model != "m" or usage is None or usage.input is None or usage.output is None:
            return None
        cached = usage.cached or 0
        return Cost(Decimal(usage.input - cached + usage.output) + Decimal(cached) / 10)


def call(number: int, usage: Usage | None, model: str = "m") -> ModelCall:
    return make_call(number, [user(f"q{number}")], "a", usage=usage, model=model)


def test_a_sum_counts_the_calls_that_it_leaves_out() -> None:
    calls = [call(1, Usage(10, 0, None, 5)), call(2, None), call(3, Usage(10, 0, None, 5), model="unheard of")]
    total = cost_sum(calls, pricing(Dollar()))
    assert (total.usd, total.unknown_calls, total.currency) == (15.0, 2, "USD")


def test_an_unknown_cost_is_never_nought() -> None:
    assert cost_sum([call(1, None)], pricing(Dollar())).usd is None
    assert cost_sum([call(1, Usage(10, 0, None, None))], pricing(Dollar())).usd is None
    assert cost_sum([call(1, Usage(10, 0, None, 5))], pricing(None)).usd is None


def test_the_answers_own_figure_goes_before_the_list() -> None:
    routed = call(1, Usage(10, 0, None, 5, raw={"cost": 0.00012}))
    assert pricing(Dollar())(routed) == Cost(Decimal("0.00012"), "wire")


@pytest.mark.parametrize(
    ("raw", "usd"),
    [
        ({"cost": 0.5, "is_byok": False, "cost_details": {"upstream_inference_cost": 0.4}}, "0.5"),
        ({"cost": 0, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.0361}}, "0.0361"),
        ({"cost": 0.0018, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.0361}}, "0.0379"),
        ({"cost": 0.0018, "cost_details": {"upstream_inference_cost": 0.0361}}, "0.0379"),
        ({"cost": 0.5, "cost_details": {"upstream_inference_cost": 0.5}}, "0.5"),
        ({"cost": 0.5, "cost_details": {"upstream_inference_cost": None}}, "0.5"),
        (
            {
                "cost": 0,
                "is_byok": True,
                "cost_details": {"upstream_inference_prompt_cost": 0.25, "upstream_inference_completions_cost": 0.5},
            },
            "0.75",
        ),
        ({"cost": {"input_tokens_cost": 0.1, "output_tokens_cost": 0.2, "total_cost": 0.3}}, "0.3"),
        ({"estimated_cost": 0.02}, "0.02"),
        ({"cost_usd_total": 0.02}, "0.02"),
        ({"cost_in_usd_ticks": 37_756_000}, "0.0037756"),
    ],
)
def test_the_answers_own_figure_in_any_member(raw: dict[str, object], usd: str) -> None:
    assert reported_cost(call(1, Usage(10, 0, None, 5, raw=raw))) == Cost(Decimal(usd), "wire")


def test_the_answers_own_figure_in_a_header_or_a_message() -> None:
    one = call(1, Usage(10, 0, None, 5))
    assert one.response is not None
    assert reported_cost(replace(one, response=replace(one.response, cost=0.25))) == Cost(Decimal("0.25"), "wire")
    metadata = (("provider_metadata", {"gateway": {"cost": "0.0045"}}),)
    messages = (replace(one.response.messages[0], extra=metadata),)
    routed = replace(one, response=replace(one.response, messages=messages))
    assert reported_cost(routed) == Cost(Decimal("0.0045"), "wire")


@pytest.mark.parametrize(
    "raw", [{}, {"cost": True}, {"cost": float("nan")}, {"cost": -1}, {"cost": 1, "is_byok": True}]
)
def test_what_is_no_cost_is_not_taken_for_one(raw: dict[str, object]) -> None:
    assert reported_cost(call(1, Usage(10, 0, None, 5, raw=raw))) is None


def test_what_the_cache_did_not_serve_costs_the_difference() -> None:
    missed = cost_of_uncached(call(1, Usage(100, 20, None, 5)), 50, Dollar())
    assert missed is not None
    assert missed.usd == Decimal(45)
    assert cost_of_uncached(call(1, Usage(100, 20, None, 5)), 500, Dollar()) == Cost(Decimal(72))
    assert cost_of_uncached(call(1, None), 50, Dollar()) is None
    assert cost_of_uncached(call(1, Usage(100, 20, None, 5)), 50, None) is None


def test_costs_stand_with_every_tally() -> None:
    calls = [call(1, Usage(10, 0, None, 5)), call(2, Usage(20, 10, None, 5))]
    report = stats(build_run(calls), listed=Dollar())
    assert report.prices == "by the dollar"
    assert report.cost.usd == report.by_model[0].cost.usd == report.by_agent[0].cost.usd == 31.0
    assert [step.cost.usd for turn in report.turns for step in turn.steps] == [15.0, 16.0]
    assert sum(turn.cost.usd or 0 for turn in report.turns) == 31.0
