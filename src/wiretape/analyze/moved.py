"""Between two texts, the first thing that changed, shown whole, and what kind of thing it is."""

from __future__ import annotations

import re
from dataclasses import dataclass

from wiretape.model.volatile_text import KINDS
from wiretape.runs.agent_identity import common_prefix

_NEAR = 120  # characters around a difference in which the thing that changed is looked for
_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Break:
    """The first difference between two requests: where, at which character, and what stood and stands there.

    `character` counts from 0: so many characters are still the same. None where there is no text to compare.
    """

    path: str
    what: str  # the kind of thing that changed: "a clock", "a uuid", "tools", …
    before: str | None
    after: str | None
    character: int | None = None
    around: tuple[str, str] | None = None  # both texts about the place
    place: int = 0  # where the difference is in them

    def __str__(self) -> str:
        where = self.path if self.character is None else f"{self.path}, character {self.character}"
        if self.before is None:
            return f"{where}: {self.what}: {self.after!r} is new" if self.after is not None else f"{where}: {self.what}"
        if self.after is None:
            return f"{where}: {self.what}: {self.before!r} is gone"
        return f"{where}: {self.what}: {self.before!r} became {self.after!r}"


@dataclass(frozen=True, slots=True)
class Moved:
    """`character` counts from 0, at the first one that differs; `before` and `after` may begin earlier."""

    kind: str
    character: int
    before: str
    after: str
    around: tuple[str, str] = ("", "")
    place: int = 0


def moved(old: str, new: str) -> Moved:
    """The first difference between two different texts."""
    at = common_prefix(old, new)
    start = max(0, at - _NEAR)
    one, other = old[start : at + _NEAR], new[start : at + _NEAR]
    seen = ((one, other), at - start)
    for kind, pattern in KINDS:
        before, after = _covering(pattern, one, at - start), _covering(pattern, other, at - start)
        if before is not None and after is not None and before != after:
            return Moved(kind, at, before, after, *seen)
    return Moved("other text", at, _around(old, at), _around(new, at), *seen)


def _covering(pattern: re.Pattern[str], text: str, place: int) -> str | None:
    """The match that covers a place, or ends right before it."""
    for match in pattern.finditer(text):
        if match.start() <= place <= match.end():
            return match.group()
    return None


def _around(text: str, at: int) -> str:
    """A little of a text, from the start of the word that differs."""
    start = at
    while start > 0 and at - start < _SHOWN // 4 and text[start - 1].isalnum() and text[start - 1].isascii():
        start -= 1
    return text[start : start + _SHOWN] + ("…" if len(text) > start + _SHOWN else "")
