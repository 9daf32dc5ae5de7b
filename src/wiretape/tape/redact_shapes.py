"""What secrets look like: known key shapes, credential-named members and parameters inside any text.

Every finder starts from a literal: looking whether a literal is there at all costs next to nothing, and only then is
a regular expression run. Boundaries are checked after a match: a leading `\\b` or `(?i)` makes a search fifty times
slower.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from wiretape.tape.redact_learned import is_dummy
from wiretape.tape.redact_members import (
    MEMBER_RANK,
    Span,
    find_members,
    find_raw_members,
    kind_of,
    looks_secret,
    members_in_json,
)
from wiretape.tape.redact_names import Member, member, secret_parameter

Finder = Callable[[str], Iterator[Span]]


@dataclass(frozen=True, slots=True)
class Shape:
    """A kind of secret: a literal that must be there, and what finds it then."""

    kind: str
    literal: str
    find: Finder
    in_json: Callable[[str], bool]  # whether it may be found in the strings of a JSON text


_ALNUM = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
# What ends with a letter or digit and yet is no word: an escape in a URL or a string, a terminal's colour.
_ESCAPE = re.compile(r"(?:%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}|\\[A-Za-z]|\[[0-9;]{0,12}m)\Z")


def _in_word(text: str, start: int) -> bool:
    """Whether what starts here goes on with a longer word, as in `task-…`: then it is no key.

    Words are made of letters, digits, `_` and `-`. Whatever else stands before a key (`=` of an assignment, `/` of a
    path, `+` of a form) parts it from what came before; so does `_` or `-` that no word stands before (`_sk-…_`).
    """
    while start and text[start - 1] in "_-":
        start -= 1
    return start > 0 and text[start - 1] in _ALNUM and not _ESCAPE.search(text, max(0, start - 16), start)


def _random_looking(text: str) -> bool:
    digits = any(c.isdigit() for c in text)
    return digits or (text.lower() != text and text.upper() != text)


def _key(kind: str, literal: str, rest: str) -> Shape:
    """A key that begins with `literal`, where it is no part of a longer word and no well-known dummy."""
    pattern = re.compile(re.escape(literal) + rest)
    group = pattern.groups

    def find(text: str) -> Iterator[Span]:
        for match in pattern.finditer(text):
            start, end = match.span(group)
            secret = match[group]
            if not group and _in_word(text, start):
                continue
            if _random_looking(secret) and not is_dummy(secret):
                yield Span(start, end, kind, unquote(secret) if "%" in secret else secret)

    return Shape(kind, literal, find, lambda text: literal in text and pattern.search(text) is not None)


_TAIL = r"(?![A-Za-z0-9_-])"
_QUOTED = r"((?:[A-Za-z0-9._~+/-]|%2[BbFf]|%7[Ee]){16,}(?:=|%3[Dd])*)"
KEYS = (
    _key("api-key", "sk-", r"[A-Za-z0-9_-]{16,}"),
    _key("api-key", "sk_live_", r"[A-Za-z0-9]{16,}"),
    _key("api-key", "rk_live_", r"[A-Za-z0-9]{16,}"),
    _key("google-api-key", "AIza", r"[A-Za-z0-9_-]{35}" + _TAIL),
    _key("google-token", "ya29.", r"[A-Za-z0-9_-]{20,}"),
    _key("google-secret", "GOCSPX-", r"[A-Za-z0-9_-]{20,}"),
    _key("aws-key-id", "AKIA", r"[A-Z0-9]{16}" + _TAIL),
    _key("aws-key-id", "ASIA", r"[A-Z0-9]{16}" + _TAIL),
    *(_key("github-token", f"gh{letter}_", r"[A-Za-z0-9]{30,}") for letter in "pousr"),
    _key("github-token", "github_pat_", r"[A-Za-z0-9_]{22,}"),
    _key("gitlab-token", "glpat-", r"[A-Za-z0-9_-]{20,}"),
    _key("slack-token", "xox", r"[a-z]-[A-Za-z0-9-]{10,}"),
    _key("huggingface-token", "hf_", r"[A-Za-z0-9]{30,}"),
    _key("groq-key", "gsk_", r"[A-Za-z0-9]{20,}"),
    _key("xai-key", "xai-", r"[A-Za-z0-9]{40,}"),
    _key("perplexity-key", "pplx-", r"[A-Za-z0-9]{32,}"),
    _key("nvidia-key", "nvapi-", r"[A-Za-z0-9_-]{40,}"),
    _key("npm-token", "npm_", r"[A-Za-z0-9]{36}"),
    _key("jwt", "eyJ", r"[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    _key("bearer", "Bearer ", r"([A-Za-z0-9._~+/-]{16,}=*)"),
    _key("bearer", "bearer ", r"([A-Za-z0-9._~+/-]{16,}=*)"),
    *(_key("bearer", f"{b}earer{space}", _QUOTED) for b in "Bb" for space in ("%20", "+")),  # in a URL or a form
    _key(
        "private-key",
        "-----BEGIN ",
        r"[A-Z ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
    ),
)

_PARAMETER = re.compile(r"([A-Za-z0-9_.%-]{2,64})=([^&\s\"'<>#\\;${}]{8,})")


def find_parameters(text: str) -> Iterator[Span]:
    """Credential parameters of URLs in a text, or of a form that is the text."""
    grant = "grant_type=" in text
    for at in _parameter_starts(text):
        match = _PARAMETER.match(text, at)
        if match and secret_parameter(match[1], grant) and not is_dummy(match[2]):
            yield Span(*match.span(2), kind_of(match[1]), match[2], rank=MEMBER_RANK)


def _parameter_starts(text: str) -> Iterator[int]:
    yield 0
    for mark in "?&":
        at = text.find(mark)
        while at >= 0:
            yield at + (5 if text.startswith("amp;", at + 1) else 1)
            at = text.find(mark, at + 1)


# A field of a multipart form, its line ends escaped or not: the headers of its part, a blank line, the value.
_LINE_END = r"(?:\r?\n|\\r\\n|\\n)"
_FIELD = re.compile(
    r'form-data;[^\r\n\\]{0,80}?name=\\*"?([^"\s;\\]{2,64})(?:\\*")?'
    rf"(?:(?!{_LINE_END}{_LINE_END})[\s\S]){{0,400}}?{_LINE_END}{_LINE_END}((?:(?!{_LINE_END}--)[\s\S]){{1,8192}})"
)


def find_fields(text: str) -> Iterator[Span]:
    """Credential-named fields of multipart forms."""
    for match in _FIELD.finditer(text):
        value = match[2].rstrip("\r\n")
        named = member(match[1]) is Member.SECRET or (secret_parameter(match[1]) and looks_secret(value))
        if named and value and "filename" not in text[match.start() : match.start(2)] and not is_dummy(value):
            yield Span(match.start(2), match.start(2) + len(value), kind_of(match[1]), value, rank=MEMBER_RANK)


_USERINFO = re.compile(r"://([^\s/?#@\"'\\:<>${}]*):([^\s/?#@\"'\\<>${}]+)@")


def find_userinfo(text: str) -> Iterator[Span]:
    """Passwords in URLs."""
    for match in _USERINFO.finditer(text):
        if is_dummy(match[2]):
            continue
        yield Span(*match.span(2), "url-password", match[2], rank=MEMBER_RANK)


MEMBERS = Shape("member", '"', find_members, members_in_json)
RAW_MEMBERS = Shape("member", '"', find_raw_members, members_in_json)
PARAMETERS = Shape("parameter", "=", find_parameters, lambda text: "grant_type=" in text or _any(find_parameters, text))
FIELDS = Shape("field", "form-data;", find_fields, lambda text: "form-data;" in text)
USERINFO = Shape("url-password", "://", find_userinfo, lambda text: _any(find_userinfo, text))
SHAPES = (*KEYS, MEMBERS, PARAMETERS, FIELDS, USERINFO)


def _any(find: Finder, text: str) -> bool:
    return next(find(text), None) is not None
