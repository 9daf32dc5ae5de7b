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
from wiretape.tape.redact_names import Member, member, secret_parameter

MEMBER_RANK = 2


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
    """A kind of secret: a literal that must be there, and what finds it then."""

    kind: str
    literal: str
    find: Finder
    in_json: Callable[[str], bool]  # whether it may be found in the strings of a JSON text


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

    return Shape(kind, literal, find, lambda text: literal in text and pattern.search(text) is not None)


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

# A member's name ends, a string begins; `" :` is what few encoders write, and is looked for apart.
_VALUE_BEGINS = (('":', re.compile(r'":\s*(\\*)"')), ('" :', re.compile(r'" :\s*(\\*)"')))
_LONGEST_NAME = 72


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
    """Values of credential-named members of JSON inside a text, escaped however often; the JSON may be cut short.

    Where the string around a member is JSON (a tool's arguments), the name alone decides. Elsewhere it may be a program
    that the model wrote, which must come back as it was: there the value must look like a literal secret.
    """
    return _members(text, text.lstrip()[:1] in _JSON_BEGINS)


def find_raw_members(text: str) -> Iterator[Span]:
    """The same in raw bytes that are JSON, or any part of it."""
    return _members(text, True)


def _members(text: str, is_json: bool) -> Iterator[Span]:
    for literal, pattern in _VALUE_BEGINS:
        if literal in text:
            for match in pattern.finditer(text):
                name = _name_before(text, match.start())
                if member(name) in (Member.SECRET, Member.MAYBE):
                    span = _member_span(text, name, match)
                    if span and _counts(text, match, span, is_json):
                        yield span


_JSON_BEGINS = frozenset("{[")
_MOST_QUOTES = 1000  # that are looked at to find where a string begins
_LITERAL_GOES_ON = re.compile(r"""\\*"(?:\\[nrt]|\s)*(?:[,}\]]|\\*"|\Z)|\Z""")


def _counts(text: str, begins: re.Match[str], span: Span, is_json: bool) -> bool:
    """Whether a credential-named member is one, or part of a program."""
    around = _string_around(text, begins)
    if around is None:
        return is_json or _is_literal(text, span)
    if around >= 0:
        return _begins_json(text, around) or _is_literal(text, span)
    # It begins in an earlier chunk: in doubt it is a secret, unless the program goes on behind the string.
    if _begins_json(text, 0):
        return True
    template = "${" in span.secret or "{{" in span.secret
    return not template and not is_dummy(span.secret) and _LITERAL_GOES_ON.match(text, span.end) is not None


def _string_around(text: str, begins: re.Match[str]) -> int | None:
    """Where the string begins in which a member stands: behind the last quote that is escaped less often.

    -1: before this text; None: it stands in no string.
    """
    depth = len(begins[1])
    if not depth:
        return None
    at = begins.start() - depth
    for _ in range(_MOST_QUOTES):
        at = text.rfind('"', 0, at)
        if at < 0:
            return -1
        before = text[max(0, at - depth) : at]
        if len(before) - len(before.rstrip("\\")) < depth:
            return at + 1
    return -1


def _begins_json(text: str, start: int) -> bool:
    return re.sub(r"\\[nrt]", "", text[start : start + 20]).lstrip("\\ \n")[:1] in _JSON_BEGINS


def _is_literal(text: str, span: Span) -> bool:
    """Whether a member's value in a text that is no JSON is a secret written out: `"Bearer " + key` is none."""
    value = span.secret
    if len(value) < 8 or any(c.isspace() or c in "${}<>%" for c in value) or is_dummy(value):
        return False
    return _LITERAL_GOES_ON.match(text, span.end) is not None


def _name_before(text: str, end: int) -> str:
    """The member's name whose closing quote, escaped or not, stands at `end`."""
    while end and text[end - 1] == "\\":
        end -= 1
    return text[text.rfind('"', max(0, end - _LONGEST_NAME), end) + 1 : end]


def _member_span(text: str, name: str, begins: re.Match[str]) -> Span | None:
    start = begins.end()
    end = _value_end(text, start, begins[1] + '"')
    value = text[start:end]
    if not value or (member(name) is Member.MAYBE and not looks_secret(value)):
        return None
    return Span(start, end, kind_of(name), value, rank=MEMBER_RANK)


def looks_secret(value: str) -> bool:
    """Whether the value of a member that may be a credential (`token`, `auth`) looks like one."""
    if len(value) < 16 or any(c.isspace() for c in value) or is_dummy(value):
        return False
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def kind_of(name: str) -> str:
    """A name as a placeholder's kind."""
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-")[:40] or "secret"


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


_USERINFO = re.compile(r"://([^\s/?#@\"'\\:<>${}]*):([^\s/?#@\"'\\<>${}]+)@")


def find_userinfo(text: str) -> Iterator[Span]:
    """Passwords in URLs."""
    for match in _USERINFO.finditer(text):
        if is_dummy(match[2]):
            continue
        yield Span(*match.span(2), "url-password", match[2], rank=MEMBER_RANK)


def _members_in_json(text: str) -> bool:
    """Whether credential-named members may stand in JSON inside a JSON text's strings: their quotes are escaped."""
    for literal in ('\\":', '\\" :'):
        at = text.find(literal)
        while at >= 0:
            if member(_name_before(text, at)) in (Member.SECRET, Member.MAYBE):
                return True
            at = text.find(literal, at + 1)
    return False


MEMBERS = Shape("member", '"', find_members, _members_in_json)
RAW_MEMBERS = Shape("member", '"', find_raw_members, _members_in_json)
PARAMETERS = Shape("parameter", "=", find_parameters, lambda text: "grant_type=" in text or _any(find_parameters, text))
USERINFO = Shape("url-password", "://", find_userinfo, lambda text: _any(find_userinfo, text))
SHAPES = (*KEYS, MEMBERS, PARAMETERS, USERINFO)


def _any(find: Finder, text: str) -> bool:
    return next(find(text), None) is not None
