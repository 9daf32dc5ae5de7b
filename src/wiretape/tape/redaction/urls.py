"""Finds passwords in URLs and connection strings, and credential-named fields of multipart forms, in any text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from wiretape.tape.redaction.assignments import kind_of
from wiretape.tape.redaction.names import Member, member, secret_parameter
from wiretape.tape.redaction.scanning import Rank, Span, find, matches
from wiretape.tape.redaction.secret_likeness import is_credential, is_dummy

_USERINFO = re.compile(r"://([^\s/?#@\"'\\:<>${}]{0,256}+):([^\s/?#@\"'\\<>${}]{4,512}+)@")
_GO_USERINFO = re.compile(r"([A-Za-z0-9_.-]{1,64}):([^\s:/@\"'\\()]{4,256})\Z")  # user:password@tcp(host:3306)/name
_BEGINS = "form-data;"
_NAME = re.compile(r'(?<!file)name=\\*"?([^"\s;\\]{2,64})')
_BLANK_LINE = re.compile(r"(?:\r?\n|\\{1,64}+(?:r\\{1,64}+)?n){2}")
_LONGEST_HEAD = 512
_LONGEST_VALUE = 8192


def find_userinfo(text: str) -> Iterator[Span]:
    """Passwords in URLs and connection strings."""
    for found in matches(_USERINFO, text):
        if _is_password(found[1], found[2]):
            yield Span(*found.span(2), "url-password", found[2], Rank.NAMED)
    at = find(text, "@tcp(")
    while at >= 0:
        begin = max(0, at - 320)
        before = _GO_USERINFO.search(text[begin:at].rpartition("\n")[2].rpartition(" ")[2].rpartition('"')[2])
        if before and _is_password(before[1], before[2]):
            yield Span(at - len(before[2]), at, "url-password", before[2], Rank.NAMED)
        at = find(text, "@tcp(", at + 5)


def _is_password(user: str, password: str) -> bool:
    return not (is_dummy(password) or password == user or (password.isdigit() and len(password) < 8))


def find_fields(text: str) -> Iterator[Span]:
    """Credential-named fields of multipart forms."""
    at = find(text, _BEGINS)
    while at >= 0:
        end = at + len(_BEGINS)
        if (span := _field(text, end)) is not None:
            yield span
            end = span.end
        at = find(text, _BEGINS, end)


@cache
def _value_end(slashes: int) -> re.Pattern[str]:
    """What a field's value ends at: the next boundary, or the JSON string around it, if the form is in one.

    `slashes`: how many backslashes escape a line break there. The quote of that string has one less.
    """
    quote = rf'|(?<!\\)\\{{{slashes - 1}}}"' if slashes else ""
    return re.compile(rf"(?:\r?\n|\\{{1,64}}+(?:r\\{{1,64}}+)?n)--{quote}|\Z")


def _field(text: str, at: int) -> Span | None:
    named = _NAME.search(text, at, at + 200)
    if named is None:
        return None
    surely = member(named[1]) is Member.SECRET
    if not surely and member(named[1]) is not Member.MAYBE and not secret_parameter(named[1]):
        return None
    other = text.find(_BEGINS, named.end(), at + _LONGEST_HEAD)
    blank = _BLANK_LINE.search(text, named.end(), other if other >= 0 else at + _LONGEST_HEAD)
    if blank is None or "filename" in text[at : blank.start()]:
        return None
    end = _value_end(len(blank[0]) - len(blank[0].lstrip("\\")))
    close = end.search(text, blank.end(), blank.end() + _LONGEST_VALUE)
    stop = close.start() if close else blank.end() + _LONGEST_VALUE
    value = text[blank.end() : stop].rstrip("\r\n")
    if not value or is_dummy(value) or not (surely or is_credential(value, surely=False)):
        return None
    return Span(blank.end(), blank.end() + len(value), kind_of(named[1]), value, Rank.NAMED)
