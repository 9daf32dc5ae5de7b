"""Amounts with an unknown part, their comparison with a limit, and the amounts that users write (50k, 60%)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from wiretape.analyze.budgets.report import Outcome
from wiretape.analyze.cost import Price
from wiretape.errors import UsageError
from wiretape.model.call import ModelCall
from wiretape.model.http import Ended


@dataclass(frozen=True, slots=True)
class Amount:
    """A lower bound: the amounts of `unknown` calls are missing from `known`."""

    known: float
    unknown: int = 0
    estimated: int = 0

    def within(self, limit: float) -> Outcome:
        """Compare with a limit. A lower bound above the limit exceeds it, whatever the unknown part is."""
        if self.known > limit:
            return "exceeded"
        return "unknown" if self.unknown else "kept"


def billed(calls: Iterable[ModelCall]) -> list[ModelCall]:
    """The calls that may have used tokens: those that the provider did not reject."""
    return [call for call in calls if not _refused(call) and (call.usage is not None or call.kind == "inference")]


def _refused(call: ModelCall) -> bool:
    if call.response is None:
        return call.ended is Ended.UPSTREAM_UNREACHABLE
    return call.response.status >= 400 and call.usage is None


def tokens(calls: Iterable[ModelCall], field: str) -> Amount:
    """Sum one field of the usage of calls."""
    return _amount(billed(calls), lambda call: getattr(call.usage, field) if call.usage is not None else None)


def _amount(calls: Sequence[ModelCall], value: Callable[[ModelCall], int | None]) -> Amount:
    values = [value(call) for call in calls]
    return Amount(sum(one for one in values if one is not None), values.count(None))


def cost(calls: Iterable[ModelCall], price: Price) -> Amount:
    """Sum the cost of calls in US dollars."""
    costs = [price(call) for call in billed(calls)]
    known = [one for one in costs if one is not None]
    estimated = sum(bool(one.assumed) for one in known)
    return Amount(float(sum(one.usd for one in known)), costs.count(None), estimated)


@dataclass(frozen=True, slots=True)
class HitRate:
    """A cache hit rate between two bounds. They are equal if every call reports its cached tokens."""

    least: float | None
    most: float | None

    def reaches(self, limit: float) -> Outcome:
        if self.least is None or self.most is None:
            return "unknown"
        if self.least >= limit:
            return "kept"
        return "exceeded" if self.most < limit else "unknown"


def hit_bounds(calls: Iterable[ModelCall]) -> HitRate:
    """Return the bounds of cached / input. Unknown cached tokens are between 0 and the whole input of the call."""
    usages = [call.usage for call in billed(calls)]
    asked = sum(usage.input for usage in usages if usage is not None and usage.input is not None)
    if not asked or any(usage is None or usage.input is None for usage in usages):
        return HitRate(None, None)
    hits = sum(usage.cached for usage in usages if usage is not None and usage.cached is not None)
    open_ = sum(usage.input or 0 for usage in usages if usage is not None and usage.cached is None)
    return HitRate(hits / asked, (hits + open_) / asked)


_COUNT = re.compile(r"(\d+(?:[_,]\d{3})*(?:\.\d+)?)\s*([kKmM]?)")
_TIMES = {"": 1, "k": 1_000, "m": 1_000_000}


def count(value: int | str, name: str) -> int:
    """Parse a number of tokens: 50000, 50k, 1.5M. Raises UsageError."""
    match = _COUNT.fullmatch(str(value).strip())
    number = float(re.sub("[_,]", "", match[1])) * _TIMES[match[2].lower()] if match else -1.0
    if number < 0 or number != int(number):
        raise UsageError(f"{name} is {value!r}: use a whole number, such as 50000 or 50k")
    return int(number)


def share(value: float | str, name: str) -> float:
    """Parse a share: 0.6 or 60%. Raises UsageError."""
    text = str(value).strip()
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise UsageError(f"{name} is {value!r}: use a share between 0 and 1, such as 0.6 or 60%")
    return number
