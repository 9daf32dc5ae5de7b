"""Finds strings with the shape of a key in any text: prefixes of providers, JWTs, private keys, webhooks.

Most prefixes end with `-`, `_` or a dot. One regular expression finds the marks behind which a key may follow. The word
before a mark is looked up in a table, and only then a rule is tried. Prefixes without a mark are searched as literals.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import NamedTuple

from wiretape.tape.redaction.scanning import Rank, Span, find, matches, present
from wiretape.tape.redaction.secret_likeness import is_dummy, looks_random

# The keys of model providers and of other services that agents use: the fixed text, the rest, the kind.
_OWN = r"""
sk- (?:ant|proj|or|svcacct|admin|None)-[A-Za-z0-9_-]{16,} api-key
sk- [A-Za-z0-9_-]{16,} api-key?
sk_ (?:live|test|prod)_[A-Za-z0-9]{10,} api-key
rk_ (?:live|test|prod)_[A-Za-z0-9]{10,} api-key
csk- [A-Za-z0-9]{40,} api-key
AIza [A-Za-z0-9_-]{35} google-api-key
ya29. [A-Za-z0-9_-]{20,} google-token
GOCSPX- [A-Za-z0-9_-]{20,} google-secret
AKIA [A-Z0-9]{16} aws-key-id
ASIA [A-Z0-9]{16} aws-key-id
ghp_ [A-Za-z0-9]{30,} github-token
gho_ [A-Za-z0-9]{30,} github-token
ghu_ [A-Za-z0-9]{30,} github-token
ghs_ [A-Za-z0-9]{30,} github-token
ghr_ [A-Za-z0-9]{30,} github-token
github_pat_ [A-Za-z0-9_]{22,} github-token
glpat- [A-Za-z0-9_-]{20,} gitlab-token
xoxa- [A-Za-z0-9-]{10,} slack-token?
xoxb- [A-Za-z0-9-]{10,} slack-token?
xoxe- [A-Za-z0-9-]{10,} slack-token?
xoxo- [A-Za-z0-9-]{10,} slack-token?
xoxp- [A-Za-z0-9-]{10,} slack-token?
xoxr- [A-Za-z0-9-]{10,} slack-token?
xoxs- [A-Za-z0-9-]{10,} slack-token?
hf_ [A-Za-z0-9]{30,} huggingface-token
gsk_ [A-Za-z0-9]{20,} groq-key?
xai- [A-Za-z0-9]{40,} xai-key
pplx- [A-Za-z0-9]{32,} perplexity-key
nvapi- [A-Za-z0-9_-]{40,} nvidia-key
npm_ [A-Za-z0-9]{36} npm-token?
lsv2_ (?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10} langsmith-key
r8_ [A-Za-z0-9]{37} replicate-key
tgp_v1_ [A-Za-z0-9_-]{40,} together-key
tvly- (?:dev-|prod-)?[A-Za-z0-9]{24,} tavily-key
pcsk_ [A-Za-z0-9_]{50,} pinecone-key
jina_ [A-Za-z0-9_-]{50,} jina-key
fc- [a-f0-9]{32} firecrawl-key
dckr_pat_ [A-Za-z0-9_-]{20,} docker-token
tskey- [a-z]{3,10}-[A-Za-z0-9]{8,}-[A-Za-z0-9]{16,} tailscale-key
sbp_ [a-f0-9]{40} supabase-key
sb_secret_ [A-Za-z0-9_-]{20,} supabase-key
whsec_ [A-Za-z0-9+/=]{24,} webhook-secret
figd_ [A-Za-z0-9_-]{35,} figma-token
e2b_ [a-f0-9]{40} e2b-key
secret_ [A-Za-z0-9]{43} notion-key
re_ [A-Za-z0-9]{8}_[A-Za-z0-9]{20,} resend-key?
"""
_ALNUM = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_LONGEST_WORD = 24
_ESCAPING = frozenset("\\%[;")
_SHORT_WORD = re.compile(r"([A-Za-z0-9]{1,2})[-_]")
_RUN_REST = re.compile(r"[A-Za-z0-9_-]*")
# Escapes that end with a letter or digit but are not words: in a URL, in a string, a terminal's color.
_ESCAPES = re.compile(r"%[0-9A-Fa-f]{2}|\\{1,16}+(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[A-Za-z])|\[[0-9;]{0,12}m")


@dataclass(frozen=True)
class KeyRule:
    """One kind of key: the fixed text that it begins with, and what follows."""

    literal: str
    rest: str
    kind: str
    unsure: bool  # words may begin so, too: what follows must look random

    def match(self, text: str, at: int) -> re.Match[str] | None:
        found = self._pattern.match(text, at)
        return found if found and self._counts(found[0]) else None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        """Compiled when it is first needed: a program meets few of these keys."""
        tail = "" if self.rest.endswith((",}", "}={0,3}", "}={0,2}")) else "(?![A-Za-z0-9])"
        return re.compile(re.escape(self.literal) + self.rest + tail)

    def _counts(self, key: str) -> bool:
        if looks_random(key):
            return True
        rest = key[len(self.literal) :]
        mixed = any(map(str.isdigit, rest)) or not (rest.islower() or rest.isupper())
        return mixed and not self.unsure and not is_dummy(key)


@cache
def rules() -> tuple[KeyRule, ...]:
    """All rules: our own ones first, then those of gitleaks."""
    vendored = Path(__file__).with_name("gitleaks.txt").read_text(encoding="utf-8")
    lines = [line.split(" ") for line in (_OWN + vendored).splitlines() if line and not line.startswith("#")]
    return tuple(KeyRule(literal, rest, kind.rstrip("?"), kind.endswith("?")) for literal, rest, kind in lines)


class _Tables(NamedTuple):
    """Most rules, by what a text is searched for, and the expression that finds it."""

    marked: dict[str, tuple[KeyRule, ...]]  # by the word before the first `-` or `_`
    dotted: dict[str, tuple[KeyRule, ...]]  # by the word before the first dot
    unmarked: dict[str, tuple[KeyRule, ...]]  # fixed texts that are a word with a capital first, by two characters
    expression: re.Pattern[str]


@cache
def _tables() -> _Tables:
    marked, dotted = _words_before("_-"), _words_before(".")
    unmarked: dict[str, tuple[KeyRule, ...]] = {}
    for rule in rules():
        if rule.literal.isalnum() and rule.literal[0].isupper():
            unmarked[rule.literal[:2]] = (*unmarked.get(rule.literal[:2], ()), rule)
    return _Tables(marked, dotted, unmarked, _expression(marked, dotted, unmarked))


def _words_before(marks: str) -> dict[str, tuple[KeyRule, ...]]:
    """The rules whose fixed text has one of these marks, by the word before the first one."""
    made: dict[str, tuple[KeyRule, ...]] = {}
    for rule in rules():
        word = re.split(f"[{marks}]", rule.literal)[0]
        if word != rule.literal and word.isalnum():
            made[word] = (*made.get(word, ()), rule)
    return made


def _expression(marked: Iterable[str], dotted: Iterable[str], unmarked: Iterable[str]) -> re.Pattern[str]:
    """Matches at the mark behind a word that may be known, and at the first character of an unmarked one.

    Python looks behind at a fixed number of characters: the last three of a word, or a shorter word and what may
    stand before it. One set of first characters makes the search twice as fast.
    """
    behind = [f"(?<={_any_of(word[-3:] for word in marked if len(word) > 2)}[-_])"]
    for length in (1, 2):
        words = _any_of(word for word in marked if len(word) == length)
        behind += [f"(?<={before}{words}[-_])" for before in _BEFORE_WORDS]
    capitals = "".join(sorted({start[0] for start in unmarked}))
    starts = [f"(?<={c})[{''.join(start[1] for start in unmarked if start[0] == c)}]" for c in capitals]
    return re.compile(
        rf"[-_.{capitals}](?:"
        rf"(?<=[-_])(?=[A-Za-z0-9_-]{{6}})(?:{'|'.join(behind)})"
        rf"|(?:{'|'.join(starts)})(?=[A-Za-z0-9_-]{{14}})"
        rf"|(?<={_any_of(word[-2:] for word in dotted)}\.)(?=[A-Za-z0-9_.-]{{20}})"
        r")"
    )


# Before a word stands another character, or an escape: `\n`, `%3D`, `\x1b`, `\u003d`, a terminal's color.
_BEFORE_WORDS = ("[^A-Za-z0-9]", r"\\[A-Za-z]", "[%x][0-9A-Fa-f]{2}", "u[0-9A-Fa-f]{4}", r"[0-9;\[]m")


def _any_of(words: Iterable[str]) -> str:
    """An expression for any of some words of equal length: those that differ in their last letter share a set."""
    last: dict[str, str] = {}
    for word in sorted(set(words)):
        last[word[:-1]] = last.get(word[:-1], "") + word[-1]
    return f"(?:{'|'.join(f'{begin}[{ends}]' for begin, ends in last.items())})"


@cache
def _by_literal() -> dict[str, Callable[[str], Iterator[Span]]]:
    """How to search a text in which a literal stands: for the shapes, and for the rules that no table has."""
    known = [rule for table in _tables()[:3] for found in table.values() for rule in found]
    others = [rule for rule in rules() if rule not in known]
    return {**_SHAPES, **{rule.literal: partial(_find_literal, rule) for rule in others}}


def find_keys(text: str) -> list[Span]:
    """Keys with a provider's prefix, JWTs and private keys."""
    spans = []
    for candidates, start in _candidates(text):
        for rule in candidates:
            if found := rule.match(text, start):
                spans.append(Span(start, found.end(), rule.kind, found[0], Rank.KEY))
                break
    by_literal = _by_literal()
    for literal in present(text, by_literal):
        spans += by_literal[literal](text)
    return spans


def _candidates(text: str) -> Iterator[tuple[tuple[KeyRule, ...], int]]:
    """Rules that may match, and where."""
    tables = _tables()
    if (first := _SHORT_WORD.match(text)) and first[1] in tables.marked:
        yield tables.marked[first[1]], 0  # the expression needs a character before a short word
    for found in matches(tables.expression, text):
        at = found.start()
        mark = text[at]
        if mark not in "-_.":
            if not in_word(text, at):
                yield tables.unmarked[found[0]], at
            continue
        table = tables.dotted if mark == "." else tables.marked
        before = text[max(0, at - _LONGEST_WORD) : at]
        word = before[len(before.rstrip(_ALNUM)) :]
        start = at - len(word)
        if word in table:
            if not in_word(text, start):
                yield table[word], start
        elif before[-len(word) - 1 : -len(word)] in _ESCAPING:
            start = _behind_escape(text, start, at)
            if start and text[start:at] in table:
                yield table[text[start:at]], start


def _behind_escape(text: str, begin: int, end: int) -> int:
    """The start of a word whose first letters belong to an escape before it; otherwise 0."""
    if not begin or text[begin - 1] not in _ESCAPING:
        return 0
    around = max(0, begin - 14)
    for escape in _ESCAPES.finditer(text, around, end):
        if escape.start() < begin < escape.end():
            return escape.end()
    return 0


def in_word(text: str, start: int) -> bool:
    """Whether a match that starts here is a part of a longer word, as in `task-…`, and so not a key.

    Words are made of letters, digits, `_` and `-`. Whatever else stands before a key (`=` of an assignment, `/` of a
    path, `+` of a form) parts it from what came before; so does `_` or `-` that no word stands before (`_sk-…_`).
    """
    least = max(0, start - 64)
    while start > least and text[start - 1] in "_-":
        start -= 1
    if start == 0 or text[start - 1] not in _ALNUM:
        return False
    around = max(0, start - 16)
    return not any(escape.end() == start for escape in _ESCAPES.finditer(text, around, start))


def _find_literal(rule: KeyRule, text: str) -> Iterator[Span]:
    at = find(text, rule.literal)
    while at >= 0:
        end = _run_end(text, at + len(rule.literal))
        if not in_word(text, at) and (found := rule.match(text, at)):
            yield Span(at, found.end(), rule.kind, found[0], Rank.KEY)
            end = max(end, found.end())
        at = find(text, rule.literal, end)


def _run_end(text: str, at: int) -> int:
    match = _RUN_REST.match(text, at)
    return match.end() if match else at


_JWT = re.compile(r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*")


def _find_jwts(text: str) -> Iterator[Span]:
    at = find(text, "eyJ")
    while at >= 0:
        found = None if in_word(text, at) else _JWT.match(text, at)
        if found and not is_dummy(found[0]):
            yield Span(at, found.end(), "jwt", found[0], Rank.KEY)
        at = find(text, "eyJ", found.end() if found else _run_end(text, at))


_PEM = "-----BEGIN "
_PEM_HEAD = re.compile(r"-----BEGIN [A-Z0-9 ]{0,60}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = re.compile(r"-----END [A-Z0-9 ]{0,60}PRIVATE KEY(?: BLOCK)?-----")
_PEM_BODY = re.compile(r"(?:\s|\\+[nr])*+[A-Za-z0-9+/=]{32}(?:[A-Za-z0-9+/=\r\n]|\\+[nr])*+")  # the end is cut off
_LONGEST_PEM = 16_384


def _find_private_keys(text: str) -> Iterator[Span]:
    at, closes = find(text, _PEM), -1
    while at >= 0:
        head = _PEM_HEAD.match(text, at)
        end = at + len(_PEM)
        if head:
            if 0 <= closes < head.end() or closes == -1:
                closes = find(text, "-----END ", head.end()) % (len(text) + 1)  # or the text's end
            close = _PEM_END.match(text, closes) if closes - at <= _LONGEST_PEM else None
            again = text.find(_PEM, head.end(), closes)
            body = close if close and again < 0 else _PEM_BODY.match(text, head.end())
            if body:
                yield Span(at, body.end(), "private-key", text[at : body.end()], Rank.KEY)
                end = body.end()
        at = find(text, _PEM, end)


_TELEGRAM = re.compile(r":AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])")


def _find_telegram(text: str) -> Iterator[Span]:
    """A bot's token: a number, a colon, 35 characters."""
    for found in matches(_TELEGRAM, text):
        before = text[max(0, found.start() - 16) : found.start()]
        digits = len(before) - len(before.rstrip("0123456789"))
        if 5 <= digits < 16:
            start = found.start() - digits
            yield Span(start, found.end(), "telegram-token", text[start : found.end()], Rank.KEY)


_AZURE = re.compile(r"[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~.-])")


def _find_azure(text: str) -> Iterator[Span]:
    """A client secret of Azure AD: its fifth and sixth characters are `Q~`."""
    at = find(text, "Q~")
    while at >= 0:
        found = _AZURE.match(text, at - 4) if at >= 4 and not in_word(text, at - 4) else None
        if found:
            yield Span(found.start(), found.end(), "azure-client-secret", found[0], Rank.KEY)
        at = find(text, "Q~", found.end() if found else at + 2)


_WEBHOOKS = {
    "hooks.slack.com/": re.compile(r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/]{20,120})"),
    "/api/webhooks/": re.compile(r"/api/webhooks/[0-9]{10,24}/([A-Za-z0-9_-]{40,120})"),
    ".webhook.office.com/": re.compile(r"\.webhook\.office\.com/webhookb2/([A-Za-z0-9@/-]{60,300})"),
}


def _find_webhooks(text: str) -> Iterator[Span]:
    for literal in present(text, _WEBHOOKS):
        for found in matches(_WEBHOOKS[literal], text):
            yield Span(*found.span(1), "webhook", found[1], Rank.KEY)


_SHAPES = {
    "eyJ": _find_jwts,
    _PEM: _find_private_keys,
    ":AA": _find_telegram,
    "Q~": _find_azure,
    "hook": _find_webhooks,
}


def may_hold_keys(text: str) -> bool:
    """Whether `find_keys` may find anything: quicker, and right for the JSON of a value, too."""
    return any(True for _ in _candidates(text)) or bool(present(text, _by_literal()))
