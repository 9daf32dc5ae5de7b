"""What secrets look like: known key shapes, credential-named members and parameters inside any text.

Every finder starts from a literal: looking whether a literal is there at all costs next to nothing, and only then is
a regular expression run. Boundaries are checked after a match: a leading `\\b` or `(?i)` makes a search fifty times
slower.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from wiretape.tape.redact_learned import is_dummy
from wiretape.tape.redact_names import MEMBER_TAILS, Member, member, secret_parameter


@dataclass(frozen=True, slots=True)
class Span:
    """Where a secret stands in a text."""

    start: int
    end: int
    kind: str
    secret: str  # the secret itself, however the text spells it
    rank: int = 1  # where spans overlap, the lowest rank names the whole


Finder = Callable[[str], Iterator[Span]]


@dataclass(frozen=True, slots=True)
class Shape:
    """A kind of secret: literals of which one must be there, and what finds it then."""

    kind: str
    literals: tuple[str, ...]
    find: Finder


_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=")


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
            escaped = start > 1 and text[start - 2] == "\\"  # \n before it, in JSON inside a text
            if start and text[start - 1] in _WORD and not group and not escaped:
                continue
            if _random_looking(secret) and not is_dummy(secret):
                yield Span(start, end, kind, secret)

    return Shape(kind, (literal,), find)


_TAIL = r"(?![A-Za-z0-9+/=_-])"
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
    _key(
        "private-key",
        "-----BEGIN ",
        r"[A-Z ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
    ),
)

_MEMBER_VALUE = re.compile(r'":? ?')
_NAME_BEFORE = re.compile(r'([A-Za-z0-9_.-]{2,64})(\\*)"\Z')
_AFTER_NAME = re.compile(r'\s*:\s*(\\*)"')


def _value_end(text: str, start: int, quote: str) -> int:
    """Where a JSON string ends whose closing quote is spelled `quote` (escaped once more for each level inside)."""
    depth = len(quote) - 1
    at = text.find('"', start)
    while at >= 0:
        slashes = at - len(text[start:at].rstrip("\\")) - start
        if slashes == depth or (slashes - depth) % (2 * (depth + 1)) == 0:
            return at - depth
        if slashes < depth:  # the text around it ends: this one was cut short
            return at - slashes
        at = text.find('"', at + 1)
    return len(text)


def find_members(text: str) -> Iterator[Span]:
    """Values of credential-named members of JSON inside a text, escaped however often; the JSON may be cut short."""
    at = text.find('":')
    spaced = text.find('" :') if at < 0 else -1
    at = at if at >= 0 else spaced
    while at >= 0:
        name = _NAME_BEFORE.search(text, max(0, at - 72), at + 1)
        after = _AFTER_NAME.match(text, at + 1)
        if name and after:
            span = _member_span(text, name[1], after)
            if span:
                yield span
        at = text.find('":', at + 1)


def _member_span(text: str, name: str, after: re.Match[str]) -> Span | None:
    says = member(name)
    if says not in (Member.SECRET, Member.MAYBE):
        return None
    start = after.end()
    end = _value_end(text, start, after[1] + '"')
    value = text[start:end]
    if says is Member.MAYBE and not looks_secret(value):
        return None
    return Span(start, end, kind_of(name), value, rank=2) if value else None


def looks_secret(value: str) -> bool:
    """Whether the value of a member that may be a credential (`token`, `auth`) looks like one."""
    if len(value) < 16 or any(c.isspace() for c in value) or is_dummy(value):
        return False
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def kind_of(name: str) -> str:
    """A name as a placeholder's kind."""
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-")[:40] or "secret"


_PARAMETER = re.compile(r"=([^&\s\"'<>#\\]{8,})")
_PARAMETER_NAME = re.compile(r"(?:^|[?&;])([A-Za-z0-9_.%-]{2,64})\Z")


def find_parameters(text: str) -> Iterator[Span]:
    """Credential parameters of URLs in a text, or of a form that is the text."""
    grant = "grant_type=" in text
    for match in _PARAMETER.finditer(text):
        name = _PARAMETER_NAME.search(text, max(0, match.start() - 66), match.start())
        if name and name.start() and text[name.start()] not in "?&;":
            continue
        if name and secret_parameter(name[1], grant):
            yield Span(*match.span(1), kind_of(name[1]), match[1], rank=2)


_USERINFO = re.compile(r"://([^\s/?#@\"'\\:<>]*):([^\s/?#@\"'\\<>]+)@")


def find_userinfo(text: str) -> Iterator[Span]:
    """Passwords in URLs."""
    for match in _USERINFO.finditer(text):
        yield Span(*match.span(2), "url-password", match[2], rank=2)


MEMBERS = Shape("member", tuple(f"{tail}{q}" for tail in MEMBER_TAILS for q in ('"', "\\")), find_members)
PARAMETERS = Shape(
    "parameter",
    ("key=", "Key=", "oken=", "sig=", "ignature=", "ecret=", "assword=", "grant_type=", "redential=", "auth="),
    find_parameters,
)
USERINFO = Shape("url-password", ("://",), find_userinfo)
SHAPES = (*KEYS, MEMBERS, PARAMETERS, USERINFO)
