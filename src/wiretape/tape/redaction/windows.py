"""Searches a text a window at a time, with the results of a search of the whole text.

One call into C code keeps every other thread of Python from running. In a text of 5 MB each search would take
milliseconds; in a window it takes less than one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

WINDOW = 64 * 1024  # characters
REACH = 4608  # how far behind its start a regular expression may read


def find(text: str, literal: str, start: int = 0) -> int:
    """`text.find(literal, start)`."""
    while len(text) - start > WINDOW:
        at = text.find(literal, start, start + WINDOW + len(literal) - 1)
        if at >= 0:
            return at
        start += WINDOW
    return text.find(literal, start)


def present(text: str, literals: Iterable[str]) -> list[str]:
    """Those of the literals that stand in the text."""
    if len(text) <= WINDOW:
        return [literal for literal in literals if literal in text]
    return [literal for literal in literals if find(text, literal) >= 0]


def matches(pattern: re.Pattern[str], text: str, reach: int = REACH) -> Iterator[re.Match[str]]:
    """`pattern.finditer(text)`, if no match is empty and none depends on what stands `reach` behind its start."""
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
