"""What calls cost, in USD. A price list is passed in: this layer only says what is to be priced, and adds up.

What is not known stays unknown: a model without a price, a call whose tokens the wire does not give. Never 0.
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
    """What one call cost.

    `source`: the provider's own figure in its answer, or a price list. `assumed` names what the wire does not say and
    the list needs: "cached" (taken for none: the most it can have cost) or "provider" (a list price for the model's
    name, whoever really served it).
    """

    usd: Decimal
    source: Literal["wire", "prices"] = "prices"
    assumed: tuple[str, ...] = ()


Price: TypeAlias = Callable[[ModelCall], Cost | None]
"""Prices a call; None where model or tokens are unknown."""


class PriceList(Protocol):
    """List prices, and where they are from: a `Price` with a name."""

    @property
    def name(self) -> str: ...

    def __call__(self, call: ModelCall) -> Cost | None: ...


def told(call: ModelCall) -> Cost | None:
    """The cost that the answer itself tells (OpenRouter's `usage.cost`), if it does.

    With a key of the user's own at the provider behind it, that figure is the router's fee only.
    """
    raw = call.usage.raw if call.usage is not None else {}
    cost = raw.get("cost")
    if isinstance(cost, bool) or not isinstance(cost, int | float) or not math.isfinite(cost) or cost < 0:
        return None
    if raw.get("is_byok") is True:
        return None
    return Cost(Decimal(str(cost)), "wire")


def pricing(listed: Price | None = None) -> Price:
    """Prices calls, each once: the provider's own figure first, then the price list, where there is one."""
    priced: dict[ModelCall, Cost | None] = {}

    def price(call: ModelCall) -> Cost | None:
        if call not in priced:  # by identity
            priced[call] = told(call) or (listed(call) if listed is not None else None)
        return priced[call]

    return price


def cost_sum(calls: Iterable[ModelCall], price: Price) -> CostSum:
    """What several calls cost together, as far as it is known. Kinds of calls that cost no tokens do not count."""
    costs = [price(call) for call in calls if call.usage is not None or call.kind == "inference"]
    known = [cost for cost in costs if cost is not None]
    return CostSum(
        usd=float(sum(cost.usd for cost in known)) if known else None,
        unknown_calls=len(costs) - len(known),
        estimated_calls=sum(bool(cost.assumed) for cost in known),
    )


def cost_of_uncached(call: ModelCall, tokens: int, listed: Price | None) -> Cost | None:
    """What a call cost more because `tokens` of its input were not served by the cache."""
    usage, response = call.usage, call.response
    if listed is None or usage is None or response is None or usage.input is None or tokens <= 0:
        return None
    cached = usage.cached or 0
    tokens = min(tokens, usage.input - cached)
    # A list price for both: without `raw`, no other figure and no write's lifetime comes in between.
    plain = replace(usage, raw={})
    written = max(0, (usage.cache_write or 0) - tokens) if usage.cache_write is not None else None
    served = replace(plain, cached=cached + tokens, cache_write=written)
    dear, cheap = (listed(_with_usage(call, one)) for one in (plain, served))
    if dear is None or cheap is None:
        return None
    return replace(dear, usd=dear.usd - cheap.usd)


def _with_usage(call: ModelCall, usage: Usage) -> ModelCall:
    assert call.response is not None
    return replace(call, response=replace(call.response, usage=usage))
