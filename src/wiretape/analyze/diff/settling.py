"""Takes out of texts what changes between any two runs, clocks and made-up ids, so that the rest can be compared."""

from __future__ import annotations

import re
from collections.abc import Sequence

from wiretape.errors import UsageError
from wiretape.tape.redaction import PLACEHOLDER

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_WEEKDAY = r"(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?"
_CLOCK = (
    r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\s?[AaPp]\.?[Mm]\b\.?)?(?:Z\b|\s?[+-]\d\d:?\d\d(?!\d)|\s?UTC\b|\s?GMT\b)?"
)
_LABEL = r"(?:call|toolu|tooluse|msg|resp|req|chatcmpl|fc|rs|gen|run|session|thread|item)"
_KINDS: tuple[tuple[str, str], ...] = (  # specific before general
    ("secret", PLACEHOLDER.pattern),
    ("uuid", r"(?<![0-9A-Za-z])[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}(?![0-9A-Za-z])"),
    ("id", rf"(?<![0-9A-Za-z]){_LABEL}[_-](?=[0-9A-Za-z_-]*\d)[0-9A-Za-z_-]{{8,}}"),
    ("id", r"(?<![0-9A-Za-z])(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,}(?![0-9A-Za-z])"),
    ("nonce", r"(?<=cch=)[0-9a-fA-F]{3,}|(?<=cc_version=)[\w.]+"),
    ("temporary path", r"/tmp/(?=[^/\s]*\d)[^\s'\"<>\\]+|/tmp/tmp[^\s'\"<>\\]+|/var/folders/[^\s'\"<>\\]+"),
    ("clock", rf"\d{{4}}-\d\d-\d\d[T ]{_CLOCK}"),
    ("date", r"(?<!\d)\d{4}年\s?\d{1,2}月\s?\d{1,2}[日号]"),
    ("date", r"(?<!\d)(?:\d{4}-\d{1,2}-\d{1,2}|\d{4}/\d{1,2}/\d{1,2}|\d{1,2}/\d{1,2}/\d{4})(?!\d)"),
    ("date", rf"\b{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}\b|\b\d{{1,2}} {_MONTH}\.? \d{{4}}\b"),
    ("clock", r"(?<!\d)\d{1,2}\s?[时時点]\s?\d{1,2}\s?分(?:\s?\d{1,2}\s?秒)?"),
    ("clock", rf"(?<![\d:]){_CLOCK}(?![\d:])"),
    ("weekday", rf"\b{_WEEKDAY}\b|(?:星期|周|礼拜)[一二三四五六日天]"),
    ("unix time", r"(?<![0-9A-Za-z.])1[5-9]\d{8}(?:\d{3})?(?:\.\d+)?(?![0-9A-Za-z])"),
)


class Settler:
    """Settles texts: each moving thing becomes its kind, such as `<clock>`. `patterns` are the project's own."""

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        self._own = [_compiled(pattern) for pattern in patterns]
        self._kinds = [(f"<{kind}>", re.compile(pattern)) for kind, pattern in _KINDS]
        self._known: dict[str, str] = {}

    def __call__(self, text: str) -> str:
        """The text, settled. Long texts recur in every request: what was settled once is remembered."""
        found = self._known.get(text)
        if found is None:
            found = self._known[text] = self._settle(text)
        return found

    def _settle(self, text: str) -> str:
        for pattern in self._own:
            text = pattern.sub("<masked>", text)
        for word, pattern in self._kinds:
            text = pattern.sub(word, text)
        return text


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise UsageError(f"the mask {pattern!r} is not a regular expression: {error}") from None
