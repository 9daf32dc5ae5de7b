"""The price list of genai-prices, from its own data, without network access. Loaded when it is first used.

It is an adapter because the import is slow and loads an HTTP client; `analyze` takes it as a function.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
from datetime import datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any

from wiretape.analyze.cost import Cost, PriceList
from wiretape.model.call import ModelCall, Usage

_ANSWERLESS = ("embedding", "rerank", "moderation")  # kinds of calls that may have no output tokens
_USUAL = ("standard", "on_demand", "unspecified")  # names of the default tier
_LOCAL = "ollama."  # formats of local servers, which are free


def price_list(started: datetime | None = None) -> PriceList | None:
    """The prices at the time of the calls; None if the extra is not installed. `started`: the start of the tape."""
    if importlib.util.find_spec("genai_prices") is None:
        return None
    return _GenaiPrices(started)


class _GenaiPrices:
    def __init__(self, started: datetime | None) -> None:
        self._started = started

    @property
    def name(self) -> str:
        return f"genai-prices {importlib.metadata.version('genai-prices')}"

    def __call__(self, call: ModelCall) -> Cost | None:
        tokens = _tokens(call)
        if tokens is None or call.format.startswith(_LOCAL):
            return None
        at = self._started + timedelta(milliseconds=call.at) if self._started is not None else None
        address = re.sub(r"^ws(s?):", r"http\1:", call.url)
        served_by_listed = _is_listed(address)
        # A provider with a price list is never priced with the list of another.
        usd = _first(tokens, call, address if served_by_listed else None, at)
        if usd is None:
            return None
        usage = call.usage
        assumed: tuple[str, ...] = () if usage is not None and usage.cached is not None else ("cached",)
        assumed += () if usage is None or usage.consistent else ("usage",)
        if call.response is not None and not call.response.service_tier and _asked_tier(call) not in (None, "default"):
            assumed += ("service_tier",)
        return Cost(usd, "prices", assumed if served_by_listed else (*assumed, "provider"))


def _tokens(call: ModelCall) -> dict[str, int] | None:
    """The tokens of a call under the names of the list; None if the provider reported too few numbers."""
    usage = call.usage
    if usage is None or usage.input is None or (usage.output is None and call.kind not in _ANSWERLESS):
        return None
    cached, written = usage.cached or 0, usage.cache_write or 0
    if cached + written > usage.input:
        return None  # contradictory counts give no price
    tokens = {"input_tokens": usage.input, "output_tokens": usage.output or 0, "cache_read_tokens": cached}
    if written:
        hour = min(written, _kept_for_an_hour(usage))
        tokens |= {"cache_write_tokens": written, "cache_write_1h_tokens": hour}
        tokens["cache_write_5m_tokens"] = written - hour
    return {name: count for name, count in tokens.items() if count} | {"input_tokens": usage.input}


def _kept_for_an_hour(usage: Usage) -> int:
    """Cache writes with the lifetime of an hour, which cost more (as Anthropic and Bedrock report them)."""
    split = usage.raw.get("cache_creation")
    if isinstance(split, dict) and isinstance(split.get("ephemeral_1h_input_tokens"), int):
        return int(split["ephemeral_1h_input_tokens"])
    details = usage.raw.get("cacheDetails")
    rows = [row for row in details if isinstance(row, dict)] if isinstance(details, list) else []
    return sum(row["inputTokens"] for row in rows if row.get("ttl") == "1h" and isinstance(row.get("inputTokens"), int))


def _first(tokens: dict[str, int], call: ModelCall, address: str | None, at: datetime | None) -> Decimal | None:
    """The price of the model in the response, else of the model in the request."""
    answered = call.response.model if call.response is not None else None
    for model in dict.fromkeys((answered, call.request.model)):
        usd = _price(tokens, model, address, at, _context(call)) if model else None
        if usd is not None:
            return usd
    return None


def _price(
    tokens: dict[str, int], model: str, address: str | None, at: datetime | None, context: dict[str, str]
) -> Decimal | None:
    from genai_prices import Usage as Tokens
    from genai_prices import calc_price

    asked: dict[str, Any] = {"provider_api_url": address, "genai_request_timestamp": at, "price_context": context}
    try:
        return calc_price(Tokens(**tokens), model, **asked).total_price
    except (LookupError, ValueError):  # an unknown model, or counts that the list rejects
        return None


def _context(call: ModelCall) -> dict[str, str]:
    """What changes the price of a model: the tier and speed that served the call, else those that it asked for."""
    usage = call.usage.raw if call.usage is not None else {}
    served = call.response.service_tier if call.response is not None else None
    asked = call.request.settings
    tier = _tier(served) or _asked_tier(call)
    speed = usage.get("speed") or asked.get("speed")
    context = {"service_tier": tier} if tier else {}
    if tier == "batch":
        context["processing"] = tier
    return context | ({"speed": speed} if isinstance(speed, str) else {})


def _asked_tier(call: ModelCall) -> str | None:
    asked = call.request.settings.get("service_tier") or call.request.settings.get("serviceTier")
    tier = _tier(asked.get("type") if isinstance(asked, dict) else asked)
    return tier if tier != "auto" else None


def _tier(name: object) -> str | None:
    """The tier under the name of the list. Google's names have a prefix; the usual tier has several names."""
    if not isinstance(name, str) or not name:
        return None
    tier = name.lower().removeprefix("service_tier_").removeprefix("on_demand_")
    return "default" if tier in _USUAL else tier


@lru_cache(maxsize=256)
def _is_listed(address: str) -> bool:
    """True if the list has a provider for an address."""
    from genai_prices.data import providers

    return any(re.match(provider.api_pattern, address) for provider in providers)
