"""Give the links in a recorded answer back the query values that redaction took from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from wiretape.matching.recorded import RecordedExchange
from wiretape.model.header_links import LINK_HEADERS, joined, replace_links
from wiretape.model.http import Exchange, Headers
from wiretape.tape.redaction import PLACEHOLDER, matches

_FOLLOWS_WITHIN = 100  # exchanges


def restored(exchange: Exchange, recorded: Sequence[RecordedExchange], order: int) -> Exchange:
    """The answer that was recorded at `order`, with links spelled as the recording's later requests spell them.

    A client that follows such a link then sends the recorded request.
    """
    response = exchange.response
    if response is None or not _has_placeholder(response.headers):
        return exchange

    def spelled(name: str, reference: str) -> str:
        target = joined(exchange.request.url, reference) if PLACEHOLDER.search(reference) else None
        if target is None:
            return reference
        wanted = target.partition("#")[0]  # which no request has
        found = next((url for url in _later_urls(recorded, order) if matches(wanted, url)), None)
        if found is None:
            return reference
        _, mark, fragment = reference.partition("#")
        return f"{reference.partition('?')[0]}?{found.partition('?')[2]}{mark}{fragment}"

    headers = Headers(replace_links(response.headers.pairs(), spelled))
    return replace(exchange, response=replace(response, headers=headers))


def _later_urls(recorded: Sequence[RecordedExchange], order: int) -> Iterator[str]:
    later: Iterable[RecordedExchange] = islice(recorded, order + 1, order + 1 + _FOLLOWS_WITHIN)
    return (one.exchange.request.url for one in later)


def _has_placeholder(headers: Headers) -> bool:
    return any(PLACEHOLDER.search(value) for name in LINK_HEADERS for value in headers.all(name))
