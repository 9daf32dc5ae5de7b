"""Cost of calls in US dollars. The caller passes a price list.

A call without a price or without token counts has an unknown cost, never 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal, Protocol, TypeAlias

from wiretape.analyze.report import CostSum
from wiretape.model.call import ModelCall, Usage


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one call.

    `source`: the provider reported the cost ("wire"), or a price list has it. `assumed` lists facts that the price
    needs and the provider did not report: "cached" (assumed 0, which gives the highest cost), "usage" (the counts
    contradict each other) and "provider" (the list price of the model's name, independent of the host that served it).
    """

    usd: Decimal
    source: Literal["wire", "prices"] = "prices"
    assumed: tuple[str, ...] = ()


Price: TypeAlias = Callable[[ModelCall], Cost | None]
"""Return the cost of a call; None if its model or tokens are unknown."""


class PriceList(Protocol):
    """A `Price` with the name of its source."""

    @property
    def name(self) -> str: ...

    def __call__(self, call: ModelCall) -> Cost | None: ...


def reported_cost(call: ModelCall) -> Cost | None:
    """The cost that the answer reports (OpenRouter's `usage.cost`).

    With `is_byok` the number is only the router's fee: the provider bills the user's own key. Such a cost is ignored.
    """
    raw = call.usage.raw if call.usage is not None else {}
    cost = raw.get("cost")
    if isinstance(cost, bool) or not isinstance(cost, int | float) or not math.isfinite(cost) or cost < 0:
        return None
    if raw.get("is_byok") is True:
        return None
    return Cost(Decimal(str(cost)), "wire")


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
