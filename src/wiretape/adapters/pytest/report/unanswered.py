"""What a test asked live and no model answered, which is why it could not be recorded: no connection, no key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from wiretape.model.http import Ended, Exchange

_MOST_TOLD = 3
_KEY_IS_WRONG = (401, 403)


def unanswered(fresh: Sequence[Exchange], recorded: Sequence[Exchange]) -> list[str]:
    """Lines for the summary; none where all that was asked got an answer. `recorded`: what the tape has so far."""
    found = Counter(told for exchange in fresh if (told := _told(exchange)) is not None)
    lines = []
    for (what, base, said, advice), times in found.most_common(_MOST_TOLD):
        lines.append(f"asked live{f' {times} times' if times > 1 else ''}: {what}: {said}")
        lines += [advice] if advice else list(_other_base(base, recorded))
    return lines


def _told(exchange: Exchange) -> tuple[str, str, str, str] | None:
    """What was asked, where, what came of it, and what to do about that."""
    asked, response = exchange.request, exchange.response
    parts = urlsplit(asked.url)
    base = f"{parts.scheme}://{parts.netloc}"
    what = f"{asked.method} {base}{parts.path}"
    if response is not None and response.status in _KEY_IS_WRONG:
        advice = "  to be recorded a test needs a key that is valid there; where none is set, it has a dummy"
        return what, base, f"refused with {response.status}", advice
    if exchange.ended is Ended.UPSTREAM_UNREACHABLE:
        return what, base, "it could not be reached", ""
    return None


def _other_base(base: str, recorded: Sequence[Exchange]) -> Iterator[str]:
    """A base URL that was set on the day of the recording and is not set now leads to the provider's own address."""
    parts = Counter(urlsplit(one.request.url)[:2] for one in recorded if one.request.url.startswith("http"))
    bases = [f"{scheme}://{place}" for (scheme, place), _ in parts.most_common()]
    if bases and base not in bases:
        yield f"  the tape has it from {bases[0]}: set the base URL that the code reads, if models answer there"
