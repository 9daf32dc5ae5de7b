"""Finds the values of credential-named members of JSON in a text: in strings, cut short, as raw bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from wiretape.tape.redact_learned import is_dummy
from wiretape.tape.redact_names import Member, member

KEY_RANK = 1
MEMBER_RANK = 2


@dataclass(frozen=True, slots=True)
class Span:
    """Where a secret stands in a text."""

    start: int
    end: int
    kind: str
    secret: str  # the secret itself, however the text spells it
    rank: int = KEY_RANK  # where spans overlap, the lowest rank names the whole


def looks_secret(value: str) -> bool:
    """Whether the value of a member that may be a credential (`token`, `auth`) looks like one."""
    if len(value) < 16 or any(c.isspace() for c in value) or is_dummy(value):
        return False
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def kind_of(name: str) -> str:
    """A name as a placeholder's kind."""
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-")[:40] or "secret"


# A member's name ends, a string begins; `" :` is what few encoders write, and is looked for apart.
_VALUE_BEGINS = (('":', re.compile(r'":\s*(\\*)"')), ('" :', re.compile(r'" :\s*(\\*)"')))
_LONGEST_NAME = 72
_MOST_SLASHES = 256


def _value_end(text: str, start: int, quote: str) -> int:
    """Where a JSON string ends whose closing quote is spelled `quote` (escaped once more for each level inside)."""
    depth = len(quote) - 1
    at = text.find('"', start)
    while at >= 0:
        before = text[max(start, at - _MOST_SLASHES) : at]
        slashes = len(before) - len(before.rstrip("\\"))
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


def members_in_json(text: str) -> bool:
    """Whether credential-named members may stand in JSON inside a JSON text's strings: their quotes are escaped."""
    for literal in ('\\":', '\\" :'):
        at = text.find(literal)
        while at >= 0:
            if member(_name_before(text, at)) in (Member.SECRET, Member.MAYBE):
                return True
            at = text.find(literal, at + 1)
    return False
