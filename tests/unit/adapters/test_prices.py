"""List prices as the library's own data gives them: what is checked are relations, since prices change."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from tests.support.calls import make_call, user

from wiretape.adapters.prices import price_list
from wiretape.analyze.cost import Cost, PriceList
from wiretape.model.call import ModelCall, Usage

pytest.importorskip("genai_prices", reason="the extra prices is not installed")
ANTHROPIC = ("claude-sonnet-4-5", "https://api.anthropic.com/v1/messages")
OPENAI = ("gpt-4o", "https://api.openai.com/v1/chat/completions")


@pytest.fixture(scope="module")
def listed() -> PriceList:
    found = price_list(datetime(2026, 11, 1, tzinfo=UTC))
    assert found is not None
    assert found.name.startswith("genai-prices ")
    return found


def asked(usage: Usage | None, model: str, url: str, **more: object) -> ModelCall:
    return replace(make_call(1, [user("q")], "a", usage=usage, model=model, **more), url=url)  # type: ignore[arg-type]


def usd(found: Cost | None) -> Decimal:
    assert found is not None
    return found.usd


def test_tokens_that_a_cache_served_cost_a_tenth(listed: PriceList) -> None:
    fresh = usd(listed(asked(Usage(1_000_000, 0, None, 0), *ANTHROPIC)))
    served = usd(listed(asked(Usage(1_000_000, 1_000_000, 0, 0), *ANTHROPIC)))
    assert served * 10 == fresh > 0


def test_tokens_written_into_a_cache_cost_more_and_more_still_for_an_hour(listed: PriceList) -> None:
    raw = {"cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 1000}}
    fresh = usd(listed(asked(Usage(1000, 0, 0, 0), *ANTHROPIC)))
    written = usd(listed(asked(Usage(1000, 0, 1000, 0), *ANTHROPIC)))
    for_long = usd(listed(asked(Usage(1000, 0, 1000, 0, raw=raw), *ANTHROPIC)))
    assert (written, for_long) == (fresh * Decimal("1.25"), fresh * 2)


def test_a_call_whose_tokens_are_not_told_has_no_price(listed: PriceList) -> None:
    assert listed(asked(None, *OPENAI)) is None
    assert listed(asked(Usage(1000, 0, None, None), *OPENAI)) is None
    assert listed(asked(Usage(None, 0, None, 10), *OPENAI)) is None
    assert listed(asked(Usage(10, 20, None, 10), *OPENAI)) is None


def test_an_unknown_model_has_no_price(listed: PriceList) -> None:
    assert listed(asked(Usage(10, 0, None, 10), "scripted-model", OPENAI[1])) is None
    assert listed(asked(Usage(10, 0, None, 10), "scripted-model", "http://127.0.0.1:1/v1")) is None
    # Another provider's model at a known address: whatever answered there, it was not that one.
    assert listed(asked(Usage(10, 0, None, 10), "gpt-4o", "https://api.deepseek.com/chat/completions")) is None
    assert listed(asked(Usage(10, 0, None, 10), "gpt-4o", "http://127.0.0.1:1/api/chat", format="ollama.chat")) is None


def test_what_had_to_be_assumed_is_said(listed: PriceList) -> None:
    known = listed(asked(Usage(10, 0, None, 10), *OPENAI))
    assert known is not None
    assert known.assumed == ()
    unsaid = listed(asked(Usage(10, None, None, 10), "gpt-4o", "http://127.0.0.1:8000/v1/chat/completions"))
    assert unsaid == Cost(known.usd, "prices", ("cached", "provider"))


def test_the_price_of_contradictory_counts_is_an_estimate(listed: PriceList) -> None:
    known, doubtful = (listed(asked(Usage(10, 0, None, 10, consistent=told), *OPENAI)) for told in (True, False))
    assert known is not None
    assert doubtful == Cost(known.usd, "prices", ("usage",))


def test_a_socket_is_priced_as_its_provider(listed: PriceList) -> None:
    found = listed(asked(Usage(10, 0, None, 10), "gpt-5", "wss://api.openai.com/v1/responses"))
    assert found is not None
    assert found.assumed == ()


def test_the_model_that_answered_goes_before_the_one_asked_for(listed: PriceList) -> None:
    call = asked(Usage(1000, 0, None, 10), *OPENAI)
    assert call.response is not None
    small = replace(call, response=replace(call.response, model="gpt-4o-mini-2024-07-18"))
    strange = replace(call, response=replace(call.response, model="our-deployment"))
    assert usd(listed(small)) < usd(listed(call)) == usd(listed(strange))


def test_a_service_tier_has_its_own_price(listed: PriceList) -> None:
    call = asked(Usage(1000, 0, None, 10), "gpt-5", OPENAI[1])
    flex = asked(Usage(1000, 0, None, 10), "gpt-5", OPENAI[1], settings={"service_tier": "flex"})
    assert usd(listed(flex)) < usd(listed(call))


@pytest.mark.parametrize(
    ("asked_for", "served", "priced"),
    [
        ("priority", "default", None),
        ("flex", "default", None),
        ("auto", "flex", "flex"),
        (None, "priority", "priority"),
        ("flex", "flex", "flex"),
        ("default", "ON_DEMAND_FLEX", "flex"),
    ],
)
def test_the_price_is_that_of_the_tier_that_served_the_call(
    listed: PriceList, asked_for: str | None, served: str, priced: str | None
) -> None:
    def call(asked_tier: str | None, tier: str | None) -> ModelCall:
        settings = {"service_tier": asked_tier} if asked_tier else {}
        one = asked(Usage(1000, 0, None, 10), "gpt-5", OPENAI[1], settings=settings)
        assert one.response is not None
        return replace(one, response=replace(one.response, service_tier=tier))

    found = listed(call(asked_for, served))
    assert found is not None
    assert found.assumed == ()
    assert usd(found) == usd(listed(call(priced, None)))


def test_a_tier_that_the_answer_does_not_name_makes_the_price_an_estimate(listed: PriceList) -> None:
    found = listed(asked(Usage(10, 0, None, 10), "gpt-5", OPENAI[1], settings={"service_tier": "flex"}))
    assert found is not None
    assert found.assumed == ("service_tier",)
