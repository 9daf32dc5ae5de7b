"""Placeholders, which replace the secrets on a tape: their numbers, and the values that they match in a replay.

`[redacted:KIND:N]` is the N-th secret of its kind. A number reveals nothing of the secret, and an equal run gives equal
placeholders, so that the diff of a re-recorded tape stays small. (A hash would let people try short passwords against
the tape; even a keyed one, because the key would have to be on the tape for later recordings.) The price: a secret that
a later process appends to the same tape gets a new number, because that process cannot recognize it.
`[redacted]` and `[redacted:KIND]` replace values that change with every message, where a number would mean nothing.
"""

from __future__ import annotations

import re
from threading import Lock

# In the user information of a URL brackets are written %5B and %5D: bare ones are read as an IPv6 address.
PLACEHOLDER = re.compile(
    r"(?:\[|%5[Bb])redacted(?:(?::|%3[Aa])([a-z0-9._-]{1,1024})(?:(?::|%3[Aa])(\d{1,32}))?)?(?:\]|%5[Dd])"
)
PLAIN = "[redacted]"


def is_placeholder(text: str) -> bool:
    """Whether the whole text is one placeholder."""
    return PLACEHOLDER.fullmatch(text) is not None


def matches(recorded: str, live: str) -> bool:
    """True if a recorded text equals a live one, with each placeholder matching any text."""
    if recorded == live:
        return True
    if "redacted" not in recorded:
        return False
    first, *rest = fixed_parts(recorded)
    if not rest or not live.startswith(first):
        return False
    at, last = len(first), rest.pop()
    for part in rest:
        found = live.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return len(live) - len(last) >= at and live.endswith(last)


def fixed_parts(text: str) -> list[str]:
    """The parts of a text before, between and after its placeholders."""
    parts, at = [], 0
    for match in PLACEHOLDER.finditer(text):
        parts.append(text[at : match.start()])
        at = match.end()
    return [*parts, text[at:]]


def kinds_in(text: str) -> set[str]:
    """The kinds of the placeholders in a text; the kind is `header` if a placeholder has none."""
    return {kind or "header" for kind, _ in PLACEHOLDER.findall(text)}


class Placeholders:
    """Hands out placeholders: one for each secret, by order of first use within its kind."""

    def __init__(self) -> None:
        self._given: dict[str, str] = {}
        self._last: dict[str, int] = {}
        self._lock = Lock()  # the proxy's loop and the recorder's worker both ask
        self._counts: dict[str, int] = {}  # how often a placeholder of each kind was written

    def of(self, secret: str, kind: str) -> str:
        with self._lock:
            known = self._given.get(secret)
            if known is None:
                number = self._last[kind] = self._last.get(kind, 0) + 1
                known = self._given[secret] = f"[redacted:{kind}:{number}]"
            else:
                kind = known.split(":")[1]
            self._counts[kind] = self._counts.get(kind, 0) + 1
        return known

    def count(self, kind: str) -> None:
        with self._lock:
            self._counts[kind] = self._counts.get(kind, 0) + 1

    def counted(self) -> dict[str, int]:
        """How often a placeholder of each kind was written."""
        with self._lock:
            return dict(self._counts)

    def forget_counts(self) -> None:
        with self._lock:
            self._counts.clear()

    def resume(self, text: str) -> None:
        """Number on after the placeholders that a tape already holds."""
        found = PLACEHOLDER.findall(text)
        with self._lock:
            for kind, number in found:
                if kind:
                    self._last[kind] = max(self._last.get(kind, 0), int(number or 0))
