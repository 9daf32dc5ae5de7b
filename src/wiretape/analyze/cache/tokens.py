"""How many tokens the start of a request makes: read off the wire where an earlier request ended there, else estimated.

An estimate lies between two known points, by the length of the texts: the longest earlier request that is all in it,
and the request itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from wiretape.analyze.cache.prefix import Elements, Sent
from wiretape.analyze.cache.rules import CacheRule

_CHAIN = 64  # earlier requests looked at for a known point


@dataclass(frozen=True, slots=True)
class Tokens:
    count: int | None
    exact: bool = False  # the wire's own figure


UNKNOWN = Tokens(None)


def whole_tokens(sent: Sent) -> int | None:
    """The input of a whole request, as the wire gives it.

    Where the provider ran tools of its own, it read the request several times, and its figure is the sum.
    """
    if any(tool.kind == "server" for tool in sent.call.tool_calls):
        return None
    return sent.call.usage.input if sent.call.usage is not None else None


def tokens_at(sent: Sent, length: int, elements: Elements, more: int = 0) -> Tokens:
    """Tokens of a request's first `length` elements, and of `more` bytes of the next one."""
    known = _known_point(sent, length)
    if known is not None and len(known.numbers) == length and not more:
        return Tokens(whole_tokens(known), exact=True)
    start, before = (len(known.numbers), whole_tokens(known) or 0) if known is not None else (0, 0)
    size = elements.size(sent.numbers[start:length]) + more
    whole = whole_tokens(sent)
    if whole is not None and whole > before:
        all_of_it = elements.size(sent.numbers[start:])
        return Tokens(before + round((whole - before) * min(1.0, size / max(1, all_of_it))))
    if known is not None:
        density = before / max(1, elements.size(known.numbers))
        return Tokens(before + round(size * density))
    return UNKNOWN


def _known_point(sent: Sent, length: int) -> Sent | None:
    """The longest earlier request that is all in the first `length` elements, and whose tokens are known."""
    earlier, limit = sent.base, min(sent.shared, length)
    for _ in range(_CHAIN):
        if earlier is None:
            return None
        if len(earlier.numbers) <= limit and whole_tokens(earlier) is not None:
            return earlier
        limit = min(limit, earlier.shared)
        earlier = earlier.base
    return None


def servable(tokens: int | None, rule: CacheRule, model: str | None) -> int | None:
    """What a cache serves of so many tokens: none below the minimum, and whole steps."""
    if tokens is None:
        return None
    least = rule.least(model)
    if least is not None and tokens < least:
        return 0
    return tokens - tokens % rule.step
