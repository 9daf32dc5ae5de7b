"""Finds secrets in a text: those that were seen as credentials, those that look like one, and the user's patterns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum

from wiretape.tape.redact_members import Span
from wiretape.tape.redact_names import Member, member
from wiretape.tape.redact_placeholders import PLACEHOLDER
from wiretape.tape.redact_shapes import KEYS, MEMBERS, RAW_MEMBERS, SHAPES, Shape


class Care(IntEnum):
    """How much may be replaced in a text."""

    KNOWN = 0  # provider state and media: only what was seen as a credential
    KEYS = 1  # ids that link things: what has a key's shape, too
    ALL = 2


_OPAQUE_FROM = 256
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+=*\Z")


def care_for(says: Member, text: str) -> Care:
    """How much may be replaced in the string value of a member."""
    if says is Member.OPAQUE:
        return Care.KNOWN
    if len(text) >= _OPAQUE_FROM and (_is_data_url(text) or _BASE64.match(text)):
        return Care.KNOWN
    if says is Member.LINK and len(text) < _OPAQUE_FROM and not any(c.isspace() for c in text):
        return Care.KEYS
    return Care.ALL


def _is_data_url(text: str) -> bool:
    return text.startswith("data:") and ";base64," in text[:128]


class Search:
    """What is looked for: `forms` are (spelling, secret, kind), longest first."""

    __slots__ = ("_finders", "_forms", "_keys", "_patterns", "_raw_finders", "_shapes")

    def __init__(
        self,
        forms: Sequence[tuple[str, str, str]],
        patterns: Sequence[re.Pattern[str]] = (),
        shapes: Sequence[Shape] = SHAPES,
    ) -> None:
        self._forms = forms
        self._patterns = patterns
        self._shapes = shapes
        self._finders = [(shape.literal, shape.find) for shape in shapes]
        raw = [RAW_MEMBERS if shape is MEMBERS else shape for shape in shapes]
        self._raw_finders = [(shape.literal, shape.find) for shape in raw]
        self._keys = [(shape.literal, shape.find) for shape in shapes if shape in KEYS]

    def narrowed(self, spelled: bytes) -> Search | None:
        """What of it may be found in the strings of a JSON value that is spelled so; None if nothing."""
        text = spelled.decode()
        there = {secret for form, secret, _ in self._forms if form in text}  # spelled once more than in its string
        forms = [form for form in self._forms if form[1] in there]
        shapes = [shape for shape in self._shapes if shape.in_json(text)]
        return Search(forms, self._patterns, shapes) if forms or shapes or self._patterns else None

    def knows(self, data: bytes) -> bool:
        """Whether something that was seen as a credential stands in the data."""
        return any(form.encode() in data for form, _, _ in self._forms)

    def spans(self, text: str, care: Care = Care.ALL) -> list[Span]:
        """Where secrets stand: in order, not overlapping, and never in a placeholder."""
        return _merge(self._found(text, care))

    def raw_spans(self, text: str) -> list[Span]:
        """Where secrets stand in raw bytes, which may be any part of a JSON text: ids and provider state are spared."""
        return _merge(
            [span for span in self._found(text, Care.ALL, raw=True) if span.rank == 0 or _replaceable(text, span)]
        )

    def _found(self, text: str, care: Care, raw: bool = False) -> list[Span]:
        if "redacted" not in text:
            return self._find(text, care, raw)
        found: list[Span] = []
        at = 0
        for match in PLACEHOLDER.finditer(text):
            found += _moved(self._find(text[at : match.start()], care, raw), at)
            at = match.end()
        return [*found, *_moved(self._find(text[at:], care, raw), at)]

    def _find(self, text: str, care: Care, raw: bool) -> list[Span]:
        found: list[Span] = []
        for form, secret, kind in self._forms:
            if form in text:
                found += _occurrences(text, form, secret, kind)
        if care is Care.KNOWN:
            return found
        finders = self._keys if care is Care.KEYS else self._raw_finders if raw else self._finders
        for literal, find in finders:
            if literal in text:
                found += find(text)
        if care is Care.ALL:
            for pattern in self._patterns:
                found += _matches(pattern, text)
        return found


_RUN = re.compile(r"[A-Za-z0-9+/_-]*")
_STRUCTURE = frozenset('"\\\n\r{}[]')


def _replaceable(text: str, span: Span) -> bool:
    """Whether a secret in raw JSON may be replaced where it stands, judged by the string around it."""
    begin = text.rfind('"', 0, span.start) + 1
    if span.kind == "pattern" and not _STRUCTURE.isdisjoint(text[span.start : span.end]):
        return False  # it would break the JSON: the tape's own document is searched string by string
    if span.kind == "pattern" and (_is_bare(text, span) or _is_name(text, span)):
        return False
    name = _NAME.search(text, max(0, begin - 80), begin)
    care = care_for(member(name[1]), "") if name else Care.ALL
    if care is Care.KNOWN or (care is Care.KEYS and span.rank != 1):
        return False
    run = _RUN.match(text, begin)
    return run is None or run.end() - begin < _OPAQUE_FROM or run.end() < span.start


def _is_bare(text: str, span: Span) -> bool:
    """Whether it stands as a JSON number, which a placeholder cannot replace."""
    return text[span.start - 1 : span.start] in (":", ",", "[", " ") and text[span.end : span.end + 1] in (
        ",",
        "}",
        "]",
    )


def _is_name(text: str, span: Span) -> bool:
    """Whether it stands in a member's name."""
    end = text.find('"', span.end, span.end + 200)
    return end >= 0 and text[end + 1 : end + 4].lstrip().startswith(":")


_NAME = re.compile(r'"([^"\\]{1,64})\\*"\s*:\s*\\*"\Z')


def _occurrences(text: str, form: str, secret: str, kind: str) -> Iterator[Span]:
    at = text.find(form)
    while at >= 0:
        yield Span(at, at + len(form), kind, secret, rank=0)
        at = text.find(form, at + len(form))


def _matches(pattern: re.Pattern[str], text: str) -> Iterator[Span]:
    """A user's pattern: where it has a group, only what the first group matches is the secret."""
    group = 1 if pattern.groups else 0
    for match in pattern.finditer(text):
        if match[group]:
            yield Span(*match.span(group), "pattern", match[group], rank=3)


def _merge(spans: list[Span]) -> list[Span]:
    """Overlapping spans as one, named by the best known of them."""
    if len(spans) < 2:
        return spans
    merged: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start, -s.end)):
        last = merged[-1] if merged else None
        if last is None or span.start >= last.end:
            merged.append(span)
            continue
        name = min(last, span, key=lambda s: s.rank)
        merged[-1] = Span(last.start, max(last.end, span.end), name.kind, name.secret, name.rank)
    return merged


def _moved(spans: Iterable[Span], by: int) -> Iterator[Span]:
    for span in spans:
        yield Span(span.start + by, span.end + by, span.kind, span.secret, span.rank)
