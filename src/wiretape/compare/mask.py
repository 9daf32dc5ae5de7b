"""Masks what differs between two equal runs: dates, times, durations, epochs, uuids, hex ids, process ids,
temporary paths.

Masking is the expensive step of matching: it is applied to the blocks that differ, and to each of them once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from wiretape.compare.canonical import canonical
from wiretape.errors import UsageError
from wiretape.model.jsonvalue import Json
from wiretape.model.jsonwalk import rebuilt

_CLOCK = r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?"
_ZONE = r"(?:Z\b|\s?[+-]\d\d:?\d\d(?!\d)|\s?(?:UTC|GMT)(?:[+-]\d{1,4}(?::\d\d)?)?)"
_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    r"|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)(?:[a-z]{0,5}day)?"
_HAN_DAY = r"[((]?(?:星期|周|礼拜)[一二三四五六日天][))]?"
_HAN_CLOCK = r"(?:上午|下午|晚上|凌晨|早上|中午)?\s?\d{1,2}\s?[时点時]\s?(?:\d{1,2}\s?分)?\s?(?:\d{1,2}\s?秒)?"
_AMPM = r"(?:\s?[AaPp]\.?[Mm]\b\.?)?"
_TIME_AFTER = rf"(?:,?[T\s]\s?(?:at\s)?{_CLOCK}{_AMPM}{_ZONE}?)?"

# One expression for all that begins with a digit. It is slow: it is tried only where digits stand that may begin
# something, by what follows them, or that may be in the middle of something hexadecimal.
_DIGITS: Final = re.compile(
    r"\d(?:(?<=[a-fA-F]\d)|\d*+(?:(?<=\d{8})|(?=[A-Za-z年月时点時]|[.:/]\d|-[0-9A-Za-z]|\s[smJFMASOND年月时点時])))"
)
_UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_HEX: Final = (
    rf"(?P<uuid>{_UUID})(?![0-9A-Za-z])"
    r"|(?P<hex>(?:0x)?(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,}(?![0-9A-Za-z])"
    r"|(?=[A-F]*\d)(?=\d*[A-F])[0-9A-F]{8,}(?![0-9A-Za-z]))"
)
_HEX_LED: Final = re.compile(_HEX)
_DIGIT_LED: Final = re.compile(
    rf"(?P<han>\d{{4}}\s?年\s?\d{{1,2}}\s?月(?:\s?\d{{1,2}}\s?[日号])?(?:\s*{_HAN_DAY})?"
    rf"(?:\s*(?:{_HAN_CLOCK}|{_CLOCK}))?(?:\s*{_HAN_DAY})?)"
    rf"|(?P<hantime>\d{{1,2}}\s?[时点時]\s?\d{{1,2}}\s?分(?:\s?\d{{1,2}}\s?秒)?"
    rf"|\d{{1,2}}月\d{{1,2}}[日号](?:\s*{_HAN_DAY})?)"
    rf"|(?P<date>\d{{4}}(?:-\d{{1,2}}-|/\d{{1,2}}/|\.\d{{1,2}}\.)\d{{1,2}}(?!\d)"
    rf"(?:\s*{_HAN_DAY}|\s\(?{_DAY}\)?)?{_TIME_AFTER}(?:\s*{_HAN_DAY}|\s\(?{_DAY}\)?)?"
    rf"|\d{{1,2}}/\d{{1,2}}/\d{{4}}(?!\d){_TIME_AFTER}"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?[\s-]{_MONTH}\.?,?[\s-]\d{{4}}(?!\d){_TIME_AFTER}"
    r"|\d{8}T\d{6}Z?)"
    r"|(?P<duration>(?:\d+\.\d+\s?(?:s|secs?|seconds)|\d+(?:\.\d+)?\s?(?:ms|milliseconds))(?![0-9A-Za-z]))"
    rf"|(?P<time>{_CLOCK}{_AMPM}{_ZONE}?(?![\d:]))"
    r"|(?P<epoch>(?:1[4-9]|2\d)\d{8}(?:\.\d+|\d{3}(?:\.\d+|\d{3}(?:\d{3})?)?)?(?![0-9A-Za-z]))"
    rf"|{_HEX}"
)
# What begins with a letter is led by literals, so that the search skips most of the text.
_MONTH_LED: Final = re.compile(
    rf"{_MONTH}\.?\s\d{{1,2}}(?:st|nd|rd|th)?,?\s(?:{_CLOCK}\s(?:[A-Z]{{3,4}}\s)?)?\d{{4}}(?!\d)"
    rf"{_TIME_AFTER}(?:\s\([^)\n]{{3,40}}\))?"
)
_DAY_BEFORE: Final = re.compile(rf"(?:{_DAY},?\s(?:the\s)?|{_HAN_DAY}[,，]?\s?)$")
_LABELLED: Final = "(?:call|toolu|tooluse|msg|resp|req|chatcmpl|fc|rs|gen|run|sess?|session|prt|thread|item)[_-]"
_LABEL: Final = re.compile(rf"{_LABELLED}[0-9A-Za-z_-]{{8,}}")  # an id if it holds a digit
# Short hex ids are ids only where they are called so; whole numbers are durations only where they are.
_CALLED_ID: Final = re.compile(r"((?:ID|Id|id)[\"']?(?:: ?|=))[0-9a-f]{6,}(?![0-9A-Za-z])")
_CALLED_DURATION: Final = re.compile(
    r"((?:duration|elapsed|took|wall time|Wall time|latency)(?:_?ms|Ms|_seconds|_s)?[\"']?[>:=\s]{1,3})\d+(?:\.\d+)?"
)
_CALLED_PROCESS: Final = re.compile(
    r"(?<![0-9A-Za-z])((?:PGID|PPID|PIDs?|pid)(?:: ?|=| ))\d+(?:, ?\d+)*(?![0-9A-Za-z.])"
)
_PROCESSES: Final = frozenset({"pid", "pgid", "ppid"})
# What a notification says of the others that are to come depends on which came first.
_OTHERS: Final = re.compile(
    r"(<task-notification>(?:\s*<[\w-]+>[^<]*</[\w-]+>)*?\s*)"
    r"<remaining>\d+</remaining>(?:\s*<all-terminal>\w+</all-terminal>)?"
)
_TEMPORARY: Final = re.compile(
    r"/tmp/(?:pytest-of-[^/\s\"'<>]+/pytest-\d+|tmp[^/\s\"'<>\\)\]]*|(?=[^/\s]*\d)[^/\s\"'<>\\)\]]+)"
    r"|/var/folders/[^/\s]+/[^/\s]+/T/[^/\s\"'<>\\)\]]+"
    r"|\\Temp\\[^\\\s\"'<>]+"
)
TEMPORARY_PLACES: Final = ("/tmp/", "/var/folders/", "\\Temp\\")
# Words that a program makes up anew at every run, and may mention again: see `id_map`.
ID_LIKE: Final = re.compile(
    r"(?<![0-9A-Za-z_-])(?:"
    r"(?P<uuid>[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12})"
    r"|(?P<hex>(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,})"
    rf"|(?P<label>{_LABELLED}(?=[0-9A-Za-z_-]*\d)[0-9A-Za-z_-]{{8,}})"
    r")(?![0-9A-Za-z_-])"
    rf"|(?P<path>{_TEMPORARY.pattern})(?![0-9A-Za-z_-])"
)
_EPOCH_SPANS: Final = ((1_400_000_000, 3_000_000_000), (1_400_000_000_000, 3_000_000_000_000))
_BETWEEN: Final = re.compile(r"[.!?;] (?=[A-Z][a-z])|\n\n(?![\s\d星周礼])")
_SHORT: Final = 128  # characters up to which it is not worth remembering what a text became
_LONG: Final = 4096  # characters from which on a text is masked in pieces
_PIECE: Final = 512
_MOST_PIECES: Final = 8192
_MOST_PAIRS: Final = 65536
_WORD: Final = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_ASCII_DIGITS: Final = frozenset("0123456789")
_HEX_LETTERS: Final = frozenset("abcdefABCDEF")
_WORDS: Final = {"han": "date", "hantime": "time"}


def _label(match: re.Match[str]) -> str:
    """Its start is looked at here: in the expression, that costs fifty times as much. (`75fc-4e50-…` is of a uuid.)"""
    start = match.start()
    inside = start and match.string[start - 1].isalnum()
    return match[0] if inside or _ASCII_DIGITS.isdisjoint(match[0]) else "<id>"


def _word(match: re.Match[str]) -> str:
    kind = match.lastgroup or ""
    return f"<{_WORDS.get(kind, kind)}>"


def _digit_led(text: str) -> str:
    """The text with what begins with a digit, or holds one and is hexadecimal, replaced."""
    made: list[str] = []
    done = 0
    for run in _DIGITS.finditer(text):
        start = run.start()
        if start < done:
            continue
        if start and text[start - 1] in _WORD:
            found = _hex_around(text, start, done)
        else:
            found = _DIGIT_LED.match(text, start) or (_uuid_around(text, start, done) if start > 8 else None)
        if found is not None:
            made += (text[done : found.start()], _word(found))
            done = found.end()
    return "".join((*made, text[done:])) if made else text


def _hex_around(text: str, start: int, done: int) -> re.Match[str] | None:
    """A hexadecimal word that the digit at `start` is in the middle of."""
    begin = start - 1
    while begin >= done and text[begin] in _HEX_LETTERS:
        begin -= 1
    if begin >= 0 and text[begin] in _WORD:
        return None
    begin += 1
    return (_HEX_LED.match(text, begin) or _uuid_around(text, begin, done)) if begin >= done else None


def _uuid_around(text: str, start: int, done: int) -> re.Match[str] | None:
    """A uuid in which the group at `start` is the first that holds a digit."""
    for before in (9, 14, 19, 24):
        begin = start - before
        if begin < done or text[start - 1] != "-":
            return None
        found = _HEX_LED.match(text, begin) if begin == 0 or text[begin - 1] not in _WORD else None
        if found is not None and found.end() > start:
            return found
    return None


def _is_duration(key: str, value: Json) -> bool:
    return isinstance(value, int | float) and ("duration" in key or "elapsed" in key)


def _without_days(text: str) -> str:
    """The text without the weekdays that stand right before a date."""
    *before, last = text.split("<date>")
    return "<date>".join([part[:-16] + _DAY_BEFORE.sub("", part[-16:]) for part in before] + [last])


def masked(text: str) -> str:
    """A text with what may differ replaced, in one pass for each kind."""
    if any(place in text for place in TEMPORARY_PLACES):
        text = _TEMPORARY.sub("<path>", text)
    if "_" in text or "-" in text:
        text = _LABEL.sub(_label, text)
    if "<remaining>" in text:
        text = _OTHERS.sub(r"\1<remaining>", text)
    text = _CALLED_ID.sub(r"\1<id>", _CALLED_DURATION.sub(r"\1<duration>", text))
    if "PID" in text or "PGID" in text or "pid" in text:
        text = _CALLED_PROCESS.sub(r"\1<process>", text)
    text = _digit_led(_MONTH_LED.sub("<date>", text))
    return _without_days(text) if "<date>" in text else text


def _cut(text: str) -> list[str]:
    """A long text in pieces that nothing which is masked reaches across: between sentences or paragraphs."""
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
    """Replaces what may differ by a word for its kind. `patterns`: the user's own regular expressions."""

    __slots__ = ("_known", "_pairs", "_patterns")

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        self._patterns = [_compiled(pattern) for pattern in patterns]
        self._pairs: dict[tuple[str, str], bool] = {}
        self._known: dict[str, str] = {}  # by text, or by piece: a clock in a prompt leaves most as they were

    def text(self, text: str) -> str:
        for pattern in self._patterns:
            text = pattern.sub("<masked>", text)
        if len(text) < _SHORT:
            return text if text.isalpha() else masked(text)
        return self._piece(text) if len(text) < _LONG else "".join([self._piece(piece) for piece in _cut(text)])

    def _piece(self, piece: str) -> str:
        known = self._known.get(piece)
        if known is None:
            if len(self._known) >= _MOST_PIECES:
                self._known.clear()
            known = self._known[piece] = masked(piece)
        return known

    def remembered(self, pair: tuple[str, str], judged: Callable[[], bool]) -> bool:
        """The earlier judgement of two texts: a loop that diverged sends the same pairs with every request."""
        known = self._pairs.get(pair)
        if known is None:
            if len(self._pairs) >= _MOST_PAIRS:
                self._pairs.clear()
            known = self._pairs[pair] = judged()
        return known

    def value(self, value: Json) -> Json:
        """The JSON value with every string masked, and numbers that are epochs; agents in a list in no order."""
        return rebuilt(value, self._leaf, closed=_in_no_order)

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


def _in_no_order(key: str | None, value: Json) -> Json:
    """Agents that were started at once are listed as they came up."""
    if key == "agents" and isinstance(value, list) and all(isinstance(row, dict) for row in value):
        return sorted(value, key=canonical)
    return value


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise UsageError(
            f"mask = [{pattern!r}] is no regular expression: {error}\n  mend it in [tool.wiretape]"
        ) from None
