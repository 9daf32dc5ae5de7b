"""Spans of secrets in a text, and searches of a text a window at a time.

While C code runs, no other thread runs Python code. A search of 5 MB in one call would take milliseconds; a search of a
window takes less than one. The results are those of a search of the whole text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import IntEnum
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

WINDOW = 64 * 1024  # characters
REACH = 4608  # how far behind its start a regular expression may read


class Rank(IntEnum):
    """What a secret was found by. Where spans overlap, the lowest rank names the whole."""

    KNOWN = 0  # it was seen as a credential before
    KEY = 1  # it has the shape of a key
    NAMED = 2  # it is the value of a credential's name
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


def find(text: str, literal: str, start: int = 0) -> int:
    """`text.find(literal, start)`."""
    while len(text) - start > WINDOW:
        at = text.find(literal, start, start + WINDOW + len(literal) - 1)
        if at >= 0:
            return at
        start += WINDOW
    return text.find(literal, start)


def present(text: str, literals: Iterable[str]) -> list[str]:
    """The literals that occur in the text."""
    if len(text) <= WINDOW:
        return [literal for literal in literals if literal in text]
    return [literal for literal in literals if find(text, literal) >= 0]


def matches(pattern: re.Pattern[str], text: str, reach: int = REACH) -> Iterator[re.Match[str]]:
    """`pattern.finditer(text)`. A match must not be empty, nor depend on text `reach` after its start."""
    return pattern.finditer(text) if len(text) <= WINDOW else _matches(pattern, text, reach)


def _matches(pattern: re.Pattern[str], text: str, reach: int) -> Iterator[re.Match[str]]:
    start = 0
    while start < len(text):
        end = start + WINDOW
        for match in pattern.finditer(text, start, end + reach):
            if match.start() >= end:
                break
            yield match
            start = match.end()
        start = max(start, end)


def consists_of(text: str, characters: re.Pattern[str]) -> bool:
    """Whether `characters`, a pattern for any number of certain characters, matches the whole text."""
    return all(characters.fullmatch(text, at, at + WINDOW) for at in range(0, len(text), WINDOW))


def lower(text: str) -> str:
    """The text with `A` to `Z` in lower case, and other letters where that keeps the length of the text."""
    if len(text) <= WINDOW:
        return _lower(text)
    return "".join([_lower(text[at : at + WINDOW]) for at in range(0, len(text), WINDOW)])


def _lower(text: str) -> str:
    made = text.lower()
    return made if len(made) == len(text) else re.sub("[A-Z]+", lambda run: run[0].lower(), text)
