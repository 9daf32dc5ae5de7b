"""Mask the volatile text of JSON values. Masking is the expensive step of matching, so results are remembered."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from wiretape.compare.canonical import canonical
from wiretape.errors import UsageError
from wiretape.model.jsonvalue import Json
from wiretape.model.jsonwalk import rebuilt
from wiretape.model.volatile_text import mask
from wiretape.tape.redaction import PLACEHOLDER

_PROCESSES: Final = frozenset({"pid", "pgid", "ppid"})
_EPOCH_SPANS: Final = ((1_400_000_000, 3_000_000_000), (1_400_000_000_000, 3_000_000_000_000))
_BETWEEN: Final = re.compile(r"[.!?;] (?=[A-Z][a-z])|\n\n(?![\s\d星周礼])")
_SHORT: Final = 128  # characters; shorter texts are masked again each time
_LONG: Final = 4096  # characters; longer texts are masked in pieces
_PIECE: Final = 512
_MOST_PIECES: Final = 8192
_MOST_PAIRS: Final = 65536


def _is_duration(key: str, value: Json) -> bool:
    return isinstance(value, int | float) and ("duration" in key or "elapsed" in key)


def _cut(text: str) -> list[str]:
    """A long text, cut between sentences or paragraphs, where no volatile text can be."""
    pieces: list[str] = []
    start, looked = 0, _PIECE
    while (found := _BETWEEN.search(text, looked)) is not None:
        looked = found.end()
        if text[found.start()] == "\n" or text[found.start() - 1].islower():
            pieces.append(text[start:looked])
            start, looked = looked, looked + _PIECE
    pieces.append(text[start:])
    return pieces


class Masker:
    """Masks volatile text, and what matches the user's own `patterns`."""

    __slots__ = ("_known", "_pairs", "_patterns")

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        self._patterns = [_compiled(pattern) for pattern in patterns]
        self._pairs: dict[tuple[str, str], bool] = {}
        self._known: dict[str, str] = {}  # by text or piece: a clock in a prompt changes one piece only

    def text(self, text: str) -> str:
        """The text with its volatile parts replaced by words such as `<date>`."""
        for pattern in self._patterns:
            text = pattern.sub("<masked>", text)
        if len(text) < _SHORT:
            return text if text.isalpha() else mask(text)
        return self._piece(text) if len(text) < _LONG else "".join([self._piece(piece) for piece in _cut(text)])

    def _piece(self, piece: str) -> str:
        known = self._known.get(piece)
        if known is None:
            if len(self._known) >= _MOST_PIECES:
                self._known.clear()
            known = self._known[piece] = mask(piece)
        return known

    def without_secrets(self, text: str) -> str:
        """The masked text, with all placeholders of secrets alike."""
        return self.text(PLACEHOLDER.sub("<secret>", text))

    def remembered(self, pair: tuple[str, str], judged: Callable[[], bool]) -> bool:
        """The result of an earlier comparison: a loop that diverged sends the same pairs with every request."""
        known = self._pairs.get(pair)
        if known is None:
            if len(self._pairs) >= _MOST_PAIRS:
                self._pairs.clear()
            known = self._pairs[pair] = judged()
        return known

    def value(self, value: Json) -> Json:
        """The JSON value with its strings, epochs, durations and process ids masked, and lists of agents sorted."""
        return rebuilt(value, self._leaf, closed=_sorted_agents)

    def _leaf(self, key: str | None, value: Json) -> Json:
        if isinstance(value, str):
            return self.text(value)
        if key is not None and _is_duration(key, value):
            return "<duration>"
        if key in _PROCESSES and isinstance(value, int):
            return "<process>"
        if isinstance(value, int | float) and any(low < value < high for low, high in _EPOCH_SPANS):
            return "<epoch>"
        return value


def _sorted_agents(key: str | None, value: Json) -> Json:
    """A list of agents in a fixed order: agents that start at the same time are listed in any order."""
    if key == "agents" and isinstance(value, list) and all(isinstance(row, dict) for row in value):
        return sorted(value, key=canonical)
    return value


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise UsageError(
            f"the mask {pattern!r} is not a regular expression: {error}\n  change `mask` in [tool.wiretape]"
        ) from None
