"""Where secrets stand in a text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple


class Rank(IntEnum):
    """What a secret was found by. Where spans overlap, the lowest rank names the whole."""

    KNOWN = 0  # it was seen as a credential before
    KEY = 1  # it has the shape of a key
    NAMED = 2  # it stands in a credential's place
    PATTERN = 3  # a user's pattern matches it


class Span(NamedTuple):
    """One secret in a text."""

    start: int
    end: int
    kind: str
    secret: str  # the secret itself, however the text spells it
    rank: Rank
    quote: str = ""  # what a placeholder is put between, where a JSON number stood


def merged(spans: Iterable[Span]) -> list[Span]:
    """Spans in order, overlapping ones as one."""
    ordered = sorted(spans, key=itemgetter(0))
    if all(span.end <= after.start for span, after in pairwise(ordered)):
        return ordered
    ordered.sort(key=lambda span: (span.start, -span.end))
    made: list[Span] = []
    for span in ordered:
        last = made[-1] if made else None
        if last is None or span.start >= last.end:
            made.append(span)
            continue
        named = min(last, span, key=lambda s: s.rank)
        made[-1] = Span(last.start, max(last.end, span.end), named.kind, named.secret, named.rank, last.quote)
    return made


def moved(spans: Iterable[Span], by: int) -> Iterator[Span]:
    """The same spans, further on in the text."""
    if not by:
        yield from spans
        return
    for span in spans:
        yield Span(span.start + by, span.end + by, span.kind, span.secret, span.rank, span.quote)
