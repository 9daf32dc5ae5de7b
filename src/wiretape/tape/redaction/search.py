"""Finds secrets in a text: those that were seen as credentials, those that look like one, and the user's patterns.

Each finder goes over a text once, from left to right, and never again into what it has read.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from operator import itemgetter

from wiretape.tape.redaction.assignments import (
    GRANT_MARKS,
    SCHEMES,
    find_assignments,
    find_grants,
    find_schemes,
    may_hold_assignments,
)
from wiretape.tape.redaction.key_shapes import find_keys, may_hold_keys
from wiretape.tape.redaction.known_secrets import Learned
from wiretape.tape.redaction.names import Member, member
from wiretape.tape.redaction.placeholders import PLACEHOLDER
from wiretape.tape.redaction.scanning import Rank, Span, consists_of, matches, merged, moved, present
from wiretape.tape.redaction.urls import find_fields, find_userinfo


class Care(IntEnum):
    """How much may be replaced in a text."""

    KNOWN = 0  # provider state and media: only known credentials
    KEYS = 1  # ids that link things: also strings with a key's shape
    WRITTEN = 2  # arguments that a model wrote: what the user's patterns match, too
    ALL = 3


_OPAQUE_FROM = 256
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]*")
_SHORTEST = 8  # characters: shorter texts are not searched, except for the user's patterns


def care_for(says: Member, text: str) -> Care:
    """How much may be replaced in the string value of a member."""
    if says is Member.OPAQUE:
        return Care.KNOWN
    if len(text) >= _OPAQUE_FROM and (_is_data_url(text) or consists_of(text.rstrip("="), _BASE64)):
        return Care.KNOWN
    if says is Member.LINK and len(text) < _OPAQUE_FROM and not any(c.isspace() for c in text):
        return Care.KEYS
    return Care.ALL


def _is_data_url(text: str) -> bool:
    return text.startswith("data:") and ";base64," in text[:128]


@dataclass(frozen=True, slots=True)
class Finder:
    """One way of finding secrets, and a quick look whether it may find any, also in the JSON of a value."""

    may_find: Callable[[str], bool]
    find: Callable[[str], Iterable[Span]]
    care: Care  # the least that must be allowed


_BY_MARK: dict[str, Callable[[str], Iterator[Span]]] = {
    **dict.fromkeys(SCHEMES, find_schemes),
    **dict.fromkeys(GRANT_MARKS, find_grants),
    "@": find_userinfo,
    "form-data;": find_fields,
}


def _may_hold_marks(text: str) -> bool:
    return bool(present(text, _BY_MARK))


def _find_by_mark(text: str) -> list[Span]:
    """Secrets that rare marks announce. Most texts have none of these marks."""
    marks = present(text, _BY_MARK)
    return [span for find in dict.fromkeys([_BY_MARK[mark] for mark in marks]) for span in find(text)] if marks else []


FINDERS = (
    Finder(may_hold_keys, find_keys, Care.KEYS),
    Finder(may_hold_assignments, find_assignments, Care.ALL),
    Finder(_may_hold_marks, _find_by_mark, Care.ALL),
)


class Search:
    """A search for all secrets that were known when it was made."""

    __slots__ = ("_finders", "_patterns", "learned", "version")

    def __init__(
        self, learned: Learned, patterns: Sequence[re.Pattern[str]] = (), finders: Sequence[Finder] = FINDERS
    ) -> None:
        self.learned = learned
        self.version = learned.version
        self._patterns = patterns
        self._finders = finders

    def narrowed(self, spelled: str) -> Search | None:
        """What of it may be found in the strings of a JSON value that is spelled so; None if nothing."""
        finders = [finder for finder in self._finders if finder.may_find(spelled)]
        if not finders and not self._patterns and not self.learned.may_be_in(spelled):
            return None
        return Search(self.learned, self._patterns, finders)

    def spans(self, text: str, care: Care = Care.ALL) -> list[Span]:
        """The spans of secrets: in order, without overlaps, and outside placeholders."""
        return merged(self._found(text, care))

    def raw_spans(self, text: str, care: Care = Care.ALL) -> list[Span]:
        """The spans of secrets in any part of a raw JSON text, except in ids and provider state."""
        found = self._found(text, care)
        if not found:
            return found
        strings = _Strings(text)
        found.sort(key=itemgetter(0))
        return merged([span for span in found if strings.may_replace(span)])

    def _found(self, text: str, care: Care) -> list[Span]:
        found: list[Span] = []
        if len(text) >= _SHORTEST:
            found += self.learned.occurrences(text)
            for finder in self._finders:
                if finder.care <= care:
                    found += finder.find(text)
        placeholders = [match.span() for match in matches(PLACEHOLDER, text)] if present(text, ("redacted",)) else []
        if placeholders and found:
            found = [span for span in found if not _touches(span, placeholders)]
        if self._patterns and care >= Care.WRITTEN:
            found += self._patterned(text, placeholders)
        return found

    def _patterned(self, text: str, placeholders: Sequence[tuple[int, int]]) -> Iterator[Span]:
        """What the user's patterns match between the placeholders."""
        at = 0
        for start, end in [*placeholders, (len(text), len(text))]:
            for pattern in self._patterns:
                yield from moved(_pattern_spans(pattern, text[at:start]), at)
            at = end


def _touches(span: Span, ranges: Sequence[tuple[int, int]]) -> bool:
    """Whether a span has a character in common with one of the ranges, which are in order."""
    after = bisect_right(ranges, (span.start, span.start))
    return (after > 0 and ranges[after - 1][1] > span.start) or (after < len(ranges) and ranges[after][0] < span.end)


def is_kept(span: Span, written: Sequence[tuple[int, int]]) -> bool:
    """Whether a secret was found by its name only, where a model wrote it as a tool's argument."""
    return span.rank is Rank.NAMED and bool(written) and _touches(span, written)


def _pattern_spans(pattern: re.Pattern[str], text: str) -> Iterator[Span]:
    """A user's pattern: where it has a group, only what the first group matches is the secret."""
    group = 1 if pattern.groups else 0
    for match in pattern.finditer(text):
        if match[group]:
            yield Span(*match.span(group), "pattern", match[group], Rank.PATTERN)


_NAME = re.compile(r'"([^"\\]{1,64})\\*"\s*:\s*\\*"\Z')
_RUN = re.compile(r"[A-Za-z0-9+/_-]*")
_STRUCTURE = frozenset('"\\\n\r{}[]')


class _Strings:
    """The strings of a raw JSON text that hold spans. Spans must be passed from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = self._begin = 0
        self._read_at = -1  # where the string begins that `_care` and `_run_end` are about
        self._care, self._run_end = Care.ALL, 0

    def may_replace(self, span: Span) -> bool:
        """Whether a secret in raw JSON may be replaced where it stands, judged by the string around it."""
        if span.rank is Rank.KNOWN:
            return True
        begin = self._text.rfind('"', self._at, span.start) + 1
        self._at = span.start
        if begin:
            self._begin = begin
            if begin == span.start and span.rank is Rank.NAMED and span.end - begin < _OPAQUE_FROM:
                return True  # a member's whole value, and the member has a credential's name
        if self._read_at != self._begin:
            self._read_at = self._begin
            self._care, self._run_end = self._read(self._begin)
        if span.rank is Rank.PATTERN and not self._may_replace_pattern(span):
            return False
        if self._care is Care.KNOWN or (self._care is Care.KEYS and span.rank is not Rank.KEY):
            return False
        return self._run_end - self._begin < _OPAQUE_FROM or self._run_end < span.start

    def _read(self, begin: int) -> tuple[Care, int]:
        """What the name before a string allows, and where the run of base64 ends that it begins with."""
        name = _NAME.search(self._text, max(0, begin - 80), begin)
        run = _RUN.match(self._text, begin)
        return care_for(member(name[1]), "") if name else Care.ALL, run.end() if run else begin

    def _may_replace_pattern(self, span: Span) -> bool:
        """False for numbers, names and text that would break the JSON: they are searched string by string later."""
        text = self._text
        if not _STRUCTURE.isdisjoint(text[span.start : span.end]):
            return False
        if text[span.start - 1 : span.start] in (":", ",", "[", " ") and text[span.end : span.end + 1] in (
            ",",
            "}",
            "]",
        ):
            return False
        end = text.find('"', span.end, span.end + 200)
        return end < 0 or not text[end + 1 : end + 4].lstrip().startswith(":")
