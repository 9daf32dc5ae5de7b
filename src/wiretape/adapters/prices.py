"""The price list: genai-prices, which brings its own data and is never asked to fetch any. Loaded when first used.

It lives here because loading it takes a while and brings an HTTP client along; `analyze` gets it as a function.
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

_ANSWERLESS = ("embedding", "rerank", "moderation")  # kinds of calls that may give no output tokens
_CONTEXT = ("service_tier", "speed")  # what a request asks for that changes its price
_LOCAL = "ollama."  # formats of servers that bill nobody


def price_list(started: datetime | None = None) -> PriceList | None:
    """List prices as of the time of the calls (`started` is the tape's); None where the extra is not installed."""
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
        # A provider with a list of its own is not priced by another's.
        usd = _first(tokens, call, address if served_by_listed else None, at)
        if usd is None:
            return None
        cached = () if call.usage is not None and call.usage.cached is not None else ("cached",)
        return Cost(usd, "prices", cached if served_by_listed else (*cached, "provider"))


def _tokens(call: ModelCall) -> dict[str, int] | None:
    """A call's tokens by the list's names; None where the wire does not give enough of them."""
    usage = call.usage
    if usage is None or usage.input is None or (usage.output is None and call.kind not in _ANSWERLESS):
        return None
    cached, written = usage.cached or 0, usage.cache_write or 0
    if cached + written > usage.input:
        return None  # counts that contradict one another are no ground for a price
    tokens = {"input_tokens": usage.input, "output_tokens": usage.output or 0, "cache_read_tokens": cached}
    if written:
        hour = min(written, _kept_for_an_hour(usage))
        tokens |= {"cache_write_tokens": written, "cache_write_1h_tokens": hour}
        tokens["cache_write_5m_tokens"] = written - hour
    return {name: count for name, count in tokens.items() if count} | {"input_tokens": usage.input}


def _kept_for_an_hour(usage: Usage) -> int:
    """Written tokens with the longer lifetime, which costs more (Anthropic's and Bedrock's spelling)."""
    split = usage.raw.get("cache_creation")
    if isinstance(split, dict) and isinstance(split.get("ephemeral_1h_input_tokens"), int):
        return int(split["ephemeral_1h_input_tokens"])
    details = usage.raw.get("cacheDetails")
    rows = [row for row in details if isinstance(row, dict)] if isinstance(details, list) else []
    return sum(row["inputTokens"] for row in rows if row.get("ttl") == "1h" and isinstance(row.get("inputTokens"), int))


def _first(tokens: dict[str, int], call: ModelCall, address: str | None, at: datetime | None) -> Decimal | None:
    """The price of the model that answered, else of the one asked for."""
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
    except (LookupError, ValueError):  # unknown to it, or counts it cannot make sense of
        return None


def _context(call: ModelCall) -> dict[str, str]:
    asked = {name: call.request.settings.get(name) for name in _CONTEXT}
    return {name: value for name, value in asked.items() if isinstance(value, str)}


@lru_cache(maxsize=256)
def _is_listed(address: str) -> bool:
    """Whether the list knows who answers at an address."""
    from genai_prices.data import providers

    return any(re.match(provider.api_pattern, address) for provider in providers)
