"""Goes from one call that says something to the next."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from wiretape.debug.replies import Matched, Reply
from wiretape.debug.timeline import Stop
from wiretape.errors import UsageError
from wiretape.model.wording import plural

if TYPE_CHECKING:
    from wiretape.debug.session import Debugger

_AROUND = 60  # characters shown at either side of a match
_MOST = 3  # matches of one call that are shown


def search(debugger: Debugger, rest: str, forward: bool) -> Reply:
    """Raises UsageError where nothing matches in this direction, saying where something does."""
    text = rest or debugger.sought
    if not text:
        raise UsageError("search for what? Such as: search refund, or search /regex/")
    pattern = _pattern(text)
    debugger.sought = text
    found = [number for number in debugger.line.calls if _matches(debugger, text, pattern, number)]
    places = [debugger.line.answer(number) for number in found]
    ahead = [place for place in places if (place > debugger.at if forward else place < debugger.at)]
    if not ahead:
        raise UsageError(_nothing(text, found, forward))
    place = ahead[0] if forward else ahead[-1]
    number = found[places.index(place)]
    arrived = debugger.arrive(place)
    excerpts = tuple(_excerpts(debugger.world.text(Stop("answer", number)), pattern))
    return Reply(parts=(arrived, Matched(text, excerpts, places.index(place) + 1, len(found))))


def _pattern(text: str) -> re.Pattern[str]:
    if len(text) > 2 and text[0] == text[-1] == "/":
        try:
            return re.compile(text[1:-1])
        except (re.error, OverflowError, RecursionError) as error:
            raise UsageError(f"{text} is no regular expression: {error}") from None
    return re.compile(re.escape(text), re.IGNORECASE)


def _matches(debugger: Debugger, text: str, pattern: re.Pattern[str], number: int) -> bool:
    if pattern.flags & re.IGNORECASE and text.isascii():  # much faster than a pattern that ignores case
        return text.casefold() in debugger.world.folded(number)
    return pattern.search(debugger.world.text(Stop("answer", number))) is not None


def _nothing(text: str, found: list[int], forward: bool) -> str:
    where = "after" if forward else "before"
    if not found:
        return f"no call says {text!r}; searched is what each call brought, and its answer"
    back = "reverse-search" if forward else "search"
    return f"nothing {where} this says {text!r}; {plural(len(found), 'call')} the other way: {back}"


def _excerpts(text: str, pattern: re.Pattern[str]) -> Iterator[str]:
    for count, match in enumerate(pattern.finditer(text)):
        if count == _MOST:
            return
        start, end = max(0, match.start() - _AROUND), min(len(text), match.end() + _AROUND)
        before, after = "…" if start else "", "…" if end < len(text) else ""
        yield before + " ".join(text[start:end].split()) + after
