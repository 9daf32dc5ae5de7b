"""Texts that expose a slow regular expression: repetitions of its items without its end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)
_CANDIDATES = 'a1-_ "=:/.,;<>[]{}()\\\n\0é日Z'
_OF_CATEGORY = {
    sre.CATEGORY_DIGIT: "1",
    sre.CATEGORY_SPACE: " ",
    sre.CATEGORY_WORD: "a",
    sre.CATEGORY_NOT_DIGIT: "a",
    sre.CATEGORY_NOT_SPACE: "a",
    sre.CATEGORY_NOT_WORD: " ",
}


def texts(pattern: re.Pattern[Any], size: int) -> Iterator[str]:
    """Texts of about `size` characters, built from the parts of the expression."""
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    made = {"a", " ", "1", "\n"}
    for before, item in _repeats(list(_parser.parse(source, pattern.flags & ~re.UNICODE))):
        made |= {
            item,
            before + item,
            before,
            item * 9 + " ",
            before + item + "\n",
            item + "\0",
            before + item * 9 + "\0",
        }
    for unit in sorted(unit for unit in made if unit):
        text = (unit * (size // len(unit) + 1))[:size]
        yield text
        yield text + "\0"
    for before, item in _repeats(list(_parser.parse(source, pattern.flags & ~re.UNICODE))):
        yield before + (item * (size // len(item) + 1))[:size] + "\0"


def _repeats(parts: list[Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Each repetition in an expression: a text that matches the part before it, and a text that matches its item."""
    for operator, argument in parts:
        if operator in _REPEATS:
            _, most, item = argument
            if most > 30:
                yield from ((before, sample) for sample in _samples(list(item)) if sample)
            yield from _repeats(list(item), before)
        elif operator is sre.SUBPATTERN:
            yield from _repeats(list(argument[-1]), before)
        elif operator is sre.BRANCH:
            for branch in argument[1]:
                yield from _repeats(list(branch), before)
        elif operator in (sre.ASSERT, sre.ASSERT_NOT):
            yield from _repeats(list(argument[1]), before)
        elif operator is sre.ATOMIC_GROUP:
            yield from _repeats(list(argument), before)
        before += next(iter(_samples([(operator, argument)])), "")


def _samples(parts: list[Any]) -> list[str]:
    """A few texts that match these parts one after the other."""
    made = [""]
    for operator, argument in parts:
        found = _of(operator, argument)
        made = [start + more for start in made for more in found][:4]
    return made


def _of(operator: Any, argument: Any) -> list[str]:
    if operator is sre.LITERAL:
        return [chr(argument)]
    if operator is sre.NOT_LITERAL:
        return [one for one in _CANDIDATES if ord(one) != argument][:3]
    if operator is sre.ANY:
        return ["a", " ", "<"]
    if operator is sre.IN:
        return _of_set(argument)
    if operator in _REPEATS:
        least, _, item = argument
        return [sample * max(1, least) for sample in _samples(list(item))]
    if operator is sre.SUBPATTERN:
        return _samples(list(argument[-1]))
    if operator is sre.ATOMIC_GROUP:
        return _samples(list(argument))
    if operator is sre.BRANCH:
        return [sample for branch in argument[1] for sample in _samples(list(branch))[:2]][:8]
    return [""]  # an assertion, a position, a reference


def _of_set(parts: list[Any]) -> list[str]:
    if parts[0][0] is sre.NEGATE:
        return [one for one in _CANDIDATES if not any(_within(one, part) for part in parts[1:])][:4]
    made = []
    for operator, argument in parts:
        if operator is sre.LITERAL:
            made.append(chr(argument))
        elif operator is sre.RANGE:
            made.append(chr(argument[0]))
        elif operator is sre.CATEGORY:
            made.append(_OF_CATEGORY[argument])
    return made[:4]


def _within(character: str, part: Any) -> bool:
    operator, argument = part
    if operator is sre.LITERAL:
        return ord(character) == argument
    if operator is sre.RANGE:
        return bool(argument[0] <= ord(character) <= argument[1])
    return operator is sre.CATEGORY and _OF_CATEGORY[argument] == character
