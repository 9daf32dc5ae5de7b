"""Cost of calls in US dollars. The caller passes a price list.

A call without a price or without token counts has an unknown cost, never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Literal, Protocol, TypeAlias

from wiretape.analyze.report import CostSum
from wiretape.model.call import ModelCall, Usage
from wiretape.model.jsonvalue import Json, JsonObject


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one call.

    `source`: the provider reported the cost ("wire"), or a price list has it. `assumed` lists facts that the price
    needs and the provider did not report: "cached" (assumed 0, which gives the highest cost), "usage" (the counts
    contradict each other), "service_tier" (the one that the request asked for, as the answer names none) and
    "provider" (the list price of the model's name, independent of the host that served it).
    """

    usd: Decimal
    source: Literal["wire", "prices"] = "prices"
    assumed: tuple[str, ...] = ()


# OpenRouter, Perplexity and others; DeepInfra; LLM Gateway
_COSTS = ("cost", "total_cost", "estimated_cost", "cost_usd_total")
_METADATA = ("provider_metadata", "providerMetadata")  # of a message, from Vercel's gateway
_TICKS = 10_000_000_000  # xAI's ticks of a dollar

Price: TypeAlias = Callable[[ModelCall], Cost | None]
"""Return the cost of a call; None if its model or tokens are unknown."""


class PriceList(Protocol):
    """A `Price` with the name of its source."""

    @property
    def name(self) -> str: ...

    def __call__(self, call: ModelCall) -> Cost | None: ...


def reported_cost(call: ModelCall) -> Cost | None:
    """The cost that the answer reports, in its usage, a header or a message.

    With the user's own key at OpenRouter (`is_byok`), `cost` is only the router's fee, and the provider's bill is in
    `cost_details`; without it the cost is unknown.
    """
    raw = call.usage.raw if call.usage is not None else {}
    usd = next((usd for name in _COSTS if (usd := _amount(raw.get(name))) is not None), None)
    if usd is None and (ticks := _amount(raw.get("cost_in_usd_ticks"))) is not None:
        usd = ticks / _TICKS
    if raw.get("is_byok") is not False:
        upstream = _upstream_cost(raw)
        if upstream and (usd != upstream or raw.get("is_byok") is True):
            usd = (usd or Decimal(0)) + upstream
        elif raw.get("is_byok") is True:
            return None
    if usd is None and call.response is not None:
        usd = _amount(call.response.cost)
        for name, value in (extra for message in call.response.messages for extra in message.extra):
            if usd is None and name in _METADATA and isinstance(value, dict) and isinstance(value.get("gateway"), dict):
                usd = _amount(value["gateway"].get("cost"))
    return None if usd is None else Cost(usd, "wire")


def _upstream_cost(raw: JsonObject) -> Decimal | None:
    """The bill of the provider to the user's own key: the sum, else its parts."""
    details = raw.get("cost_details")
    if not isinstance(details, dict):
        return None
    whole = _amount(details.get("upstream_inference_cost"))
    parts = [_amount(details.get(f"upstream_inference_{part}_cost")) for part in ("prompt", "completions")]
    return whole or sum((part for part in parts if part is not None), Decimal(0))


def _amount(value: Json) -> Decimal | None:
    """A number of USD, also as a text or as the total of an object (Perplexity)."""
    if isinstance(value, dict):
        value = value.get("total_cost")
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        return None
    return amount if amount.is_finite() and amount >= 0 else None


def pricing(listed: Price | None = None) -> Price:
    """Return a cached `Price`: the cost that the provider reported, else the list price."""
    priced: dict[ModelCall, Cost | None] = {}

    def price(call: ModelCall) -> Cost | None:
        if call not in priced:  # by identity
            priced[call] = reported_cost(call) or (listed(call) if listed is not None else None)
        return priced[call]

    return price


def cost_sum(calls: Iterable[ModelCall], price: Price) -> CostSum:
    """Sum the known costs of calls. A call that uses no tokens (its kind is not inference) is left out."""
    costs = [price(call) for call in calls if call.usage is not None or call.kind == "inference"]
    known = [cost for cost in costs if cost is not None]
    return CostSum(
        usd=float(sum(cost.usd for cost in known)) if known else None,
        unknown_calls=len(costs) - len(known),
        estimated_calls=sum(bool(cost.assumed) for cost in known),
    )


def cost_of_uncached(call: ModelCall, tokens: int, listed: Price | None) -> Cost | None:
    """The additional cost of a call because the cache did not serve `tokens` of its input."""
    usage, response = call.usage, call.response
    if listed is None or usage is None or response is None or usage.input is None or tokens <= 0:
        return None
    cached = usage.cached or 0
    tokens = min(tokens, usage.input - cached)
    # Without `raw`, both prices are list prices for the default lifetime of cache writes.
    plain = replace(usage, raw={})
    written = max(0, (usage.cache_write or 0) - tokens) if usage.cache_write is not None else None
    served = replace(plain, cached=cached + tokens, cache_write=written)
    paid, possible = (listed(_with_usage(call, one)) for one in (plain, served))
    if paid is None or possible is None:
        return None
    return replace(paid, usd=paid.usd - possible.usd)


def _with_usage(call: ModelCall, usage: Usage) -> ModelCall:
    assert call.response is not None
    return replace(call, response=replace(call.response, usage=usage))
