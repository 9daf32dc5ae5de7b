"""Between two texts, the first thing that changed, shown whole, and what kind of thing it is."""

from __future__ import annotations

import re
from dataclasses import dataclass

from wiretape.runs.agent_identity import common_prefix

_NEAR = 120  # characters around a difference in which the thing that changed is looked for
_SHOWN = 40

_WEEKDAY = (
    r"(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?|星期[一二三四五六日天]|周[一二三四五六日天]"
)
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
# The first kind that covers the difference in both texts is it: specific before general.
_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("a uuid", re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")),
    ("a clock", re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?")),
    ("a clock", re.compile(r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\s?[AaPp]\.?[Mm]\.?)?")),
    ("a clock", re.compile(r"\d{1,2}\s?[时時点]\s?\d{1,2}\s?分(?:\s?\d{1,2}\s?秒)?")),
    ("a date", re.compile(r"\d{4}年\d{1,2}月\d{1,2}日")),
    ("a date", re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4}")),
    ("a date", re.compile(rf"{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?|\d{{1,2}} {_MONTH}\.? \d{{4}}")),
    ("a weekday", re.compile(rf"\b(?:{_WEEKDAY})|{_WEEKDAY}")),
    ("a unix time", re.compile(r"\b1[5-9]\d{8}(?:\d{3}|\d{6}|\d{9}|\.\d+)?\b")),
    ("a temporary path", re.compile(r"(?:/tmp/|/var/folders/|\\Temp\\)[^\s'\"]+")),
    ("a nonce", re.compile(r"\b(?=[0-9a-zA-Z_-]*\d)(?=[0-9a-zA-Z_-]*[a-zA-Z])[0-9a-zA-Z_-]{8,}\b")),
    ("a nonce", re.compile(r"(?<==)[0-9a-fA-F]{3,}\b")),
    ("a number", re.compile(r"-?\d+(?:\.\d+)?")),
)


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
    for kind, pattern in _KINDS:
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
