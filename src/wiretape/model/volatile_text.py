"""Volatile text: the parts of a text that differ between two equal runs. Only this module recognizes them.

They are dates, times, durations, epochs, UUIDs, hexadecimal and labelled ids, process ids, temporary paths and nonces.
`mask` decides; `KINDS` names the part of a text that changed; `without_numbers` compares more loosely.
"""

from __future__ import annotations

import re
from typing import Final

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

# `_DIGIT_LED` matches everything that begins with a digit. It is slow, so it is tried only at the digits that `_DIGITS`
# finds: those whose next characters allow a match, and those that may be inside a hexadecimal word.
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
# Expressions that begin with a letter start with literals, so that the search skips most of the text.
_MONTH_LED: Final = re.compile(
    rf"{_MONTH}\.?\s\d{{1,2}}(?:st|nd|rd|th)?,?\s(?:{_CLOCK}\s(?:[A-Z]{{3,4}}\s)?)?\d{{4}}(?!\d)"
    rf"{_TIME_AFTER}(?:\s\([^)\n]{{3,40}}\))?"
)
_DAY_BEFORE: Final = re.compile(rf"(?:{_DAY},?\s(?:the\s)?|{_HAN_DAY}[,，]?\s?)$")
_LABELLED: Final = "(?:call|toolu|tooluse|msg|resp|req|chatcmpl|fc|rs|gen|run|sess?|session|prt|thread|item)[_-]"
_LABEL: Final = re.compile(rf"{_LABELLED}[0-9A-Za-z_-]{{8,}}")  # an id if it contains a digit
# Short hexadecimal words are ids, and whole numbers durations, only after a word such as `id` or `took`.
_CALLED_ID: Final = re.compile(r"((?:ID|Id|id)[\"']?(?:: ?|=))[0-9a-f]{6,}(?![0-9A-Za-z])")
_CALLED_DURATION: Final = re.compile(
    r"((?:duration|elapsed|took|wall time|Wall time|latency)(?:_?ms|Ms|_seconds|_s)?[\"']?[>:=\s]{1,3})\d+(?:\.\d+)?"
)
_CALLED_PROCESS: Final = re.compile(
    r"(?<![0-9A-Za-z])((?:PGID|PPID|PIDs?|pid)(?:: ?|=| ))\d+(?:, ?\d+)*(?![0-9A-Za-z.])"
)
# How many notifications remain depends on the order in which they arrived.
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
# Words that a program creates in every run, and may mention again: see `matching.id_map`.
ID_LIKE: Final = re.compile(
    r"(?<![0-9A-Za-z_-])(?:"
    rf"(?P<uuid>{_UUID})"
    r"|(?P<hex>(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,})"
    rf"|(?P<label>{_LABELLED}(?=[0-9A-Za-z_-]*\d)[0-9A-Za-z_-]{{8,}})"
    r")(?![0-9A-Za-z_-])"
    rf"|(?P<path>{_TEMPORARY.pattern})(?![0-9A-Za-z_-])"
)
BILLING_HEADER: Final = "x-anthropic-billing-header"  # Claude Code starts its prompts with it, and a new nonce
_BILLING_LINE: Final = f"{BILLING_HEADER}:"
# The kinds of a change, specific before general. The last two also match text that is not volatile.
KINDS: Final = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("a uuid", _UUID),
        ("a clock", rf"\d{{4}}-\d\d-\d\d[T ]{_CLOCK}{_AMPM}{_ZONE}?"),
        ("a clock", rf"{_CLOCK}{_AMPM}{_ZONE}?"),
        ("a clock", r"\d{1,2}\s?[时時点]\s?\d{1,2}\s?分(?:\s?\d{1,2}\s?秒)?"),
        ("a date", r"\d{4}\s?年\s?\d{1,2}\s?月(?:\s?\d{1,2}\s?[日号])?"),
        ("a date", r"\d{4}(?:-\d{1,2}-|/\d{1,2}/|\.\d{1,2}\.)\d{1,2}|\d{1,2}/\d{1,2}/\d{4}"),
        ("a date", rf"{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?|\d{{1,2}} {_MONTH}\.? \d{{4}}"),
        ("a weekday", rf"\b{_DAY}\b|{_HAN_DAY}"),
        ("a unix time", r"\b(?:1[4-9]|2\d)\d{8}(?:\d{3}|\d{6}|\d{9}|\.\d+)?\b"),
        ("a temporary path", rf"(?:{_TEMPORARY.pattern})[^\s'\"]*"),
        ("a nonce", r"\b(?=[0-9a-zA-Z_-]*\d)(?=[0-9a-zA-Z_-]*[a-zA-Z])[0-9a-zA-Z_-]{8,}\b"),
        ("a nonce", r"(?<==)[0-9a-fA-F]{3,}\b"),
        ("a number", r"-?\d+(?:\.\d+)?"),
    )
)
# Words with a digit, weekdays and months.
_COUNTING: Final = re.compile(
    rf"(?<![\w.:+-])[\w.:+-]*\d[\w.:+-]*|\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b|{_HAN_DAY}|\b{_MONTH}\b"
)
_MASKED_WORD: Final = re.compile("<(?:date|duration|epoch|hex|id|path|process|time|uuid)>")
_WORD: Final = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_ASCII_DIGITS: Final = frozenset("0123456789")
_HEX_LETTERS: Final = frozenset("abcdefABCDEF")
_WORDS: Final = {"han": "date", "hantime": "time"}


def _label(match: re.Match[str]) -> str:
    """`<id>`, if the match is one. In the expression, the check of its start is 50 times slower."""
    start = match.start()
    inside = start and match.string[start - 1].isalnum()
    return match[0] if inside or _ASCII_DIGITS.isdisjoint(match[0]) else "<id>"


def _word(match: re.Match[str]) -> str:
    kind = match.lastgroup or ""
    return f"<{_WORDS.get(kind, kind)}>"


def _digit_led(text: str) -> str:
    """The text with everything replaced that begins with a digit, or is hexadecimal and contains one."""
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
    """The hexadecimal word around the digit at `start`."""
    begin = start - 1
    while begin >= done and text[begin] in _HEX_LETTERS:
        begin -= 1
    if begin >= 0 and text[begin] in _WORD:
        return None
    begin += 1
    return (_HEX_LED.match(text, begin) or _uuid_around(text, begin, done)) if begin >= done else None


def _uuid_around(text: str, start: int, done: int) -> re.Match[str] | None:
    """A UUID in which the group at `start` is the first with a digit."""
    for before in (9, 14, 19, 24):
        begin = start - before
        if begin < done or text[start - 1] != "-":
            return None
        found = _HEX_LED.match(text, begin) if begin == 0 or text[begin - 1] not in _WORD else None
        if found is not None and found.end() > start:
            return found
    return None


def _without_days(text: str) -> str:
    """The text without the weekdays right before its dates."""
    *before, last = text.split("<date>")
    return "<date>".join([part[:-16] + _DAY_BEFORE.sub("", part[-16:]) for part in before] + [last])


def mask(text: str) -> str:
    """The text with each volatile part replaced by a word for its kind, such as `<date>`."""
    if text.startswith(_BILLING_LINE):
        return BILLING_HEADER
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


def without_numbers(text: str) -> str:
    """The masked text with `#` for every word with a digit, weekday and month."""
    return _COUNTING.sub("#", _MASKED_WORD.sub("0", mask(text)))
