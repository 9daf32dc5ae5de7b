"""Finds the values of credential names in any text: `API_KEY=…`, `"password": "…"`, `<token>…</token>`, `Cookie: …`.

One regular expression finds a part of such a name (`key`, `token`, `pass`, …) with a sign of assignment behind it. Then
the whole name is read backwards and classified, and the value is read forwards. A value counts if it looks like a
secret: programs, documents and schemas have the same spellings. JSON inside strings is escaped once more for each
level; quotes are therefore read with the backslashes before them.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterable, Iterator
from functools import lru_cache
from urllib.parse import unquote

from wiretape.tape.redaction.names import Member, member, secret_parameter
from wiretape.tape.redaction.scanning import Rank, Span, find, lower, matches, present
from wiretape.tape.redaction.secret_likeness import is_credential, is_dummy, looks_random

LONGEST_NAME = 64
_SHORT = 2048  # characters that are searched once more rather than read for nothing
_LONGEST_VALUE = 8192
_NAME_CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
_SPACE = r"(?:\s|\\{1,63}+[nrt])"
_QUOTE = r"(?:\\{0,63}+[\"'`])"  # six levels of JSON in strings
# Read in lower case: parts of `key`, `token`, `cookie`, `secret`, `credential`, `password`, `auth` that begin with rare
# letters, which makes the search four times faster, and what stands between a name and its value.
_NAMED = re.compile(
    r"(?:k(?:ey|en|ie)|cre[td]|pass|pwd|uth|jwt)[a-z0-9_-]{0,24}+"
    r"(?:"
    rf"(?P<pair>{_QUOTE}?,?{_SPACE}{{0,40}}+{_QUOTE}?value{_QUOTE}?[ \t]{{0,4}}[:=])"  # "name": "API_KEY", "value": …
    rf"|(?P<plist></key>{_SPACE}{{0,40}}+<string>)"
    rf"|(?P<call>{_QUOTE},[ \t]{{0,4}}+(?={_QUOTE}))"  # setenv("API_KEY", "…")
    rf"|(?P<sign>{_QUOTE}?\]?{_QUOTE}?[ \t]{{0,4}}+(?:=>|:=|:|=|>))"
    r"|(?P<option>[ \t]{1,2}(?=[^\s=:(),.-]{6})|[ \t]is[ \t])"  # --password …
    r")"
)
_LEAD = re.compile(rf"[ \t]{{0,64}}+(?:[fFrRbBuU]{{1,2}}(?=[\"']))?(?P<quote>{_QUOTE})?")
_LIST = re.compile(rf"{_SPACE}{{0,64}}+\[{_SPACE}{{0,200}}+(?={_QUOTE})")
_NEXT = re.compile(rf"{_QUOTE}{_SPACE}{{0,200}}+,{_SPACE}{{0,200}}+(?={_QUOTE})")
_DASHES = re.compile(r"[ \t]{0,8}(?:\r?\n|(?:\\+r)?\\+n)[ \t]{0,64}-[ \t]{1,8}(?=\S)")
_INNER = re.compile(
    rf"{_SPACE}{{0,64}}+\{{{_SPACE}{{0,200}}+{_QUOTE}(?:value|secret|data|plain)\w{{0,8}}{_QUOTE}[ \t]{{0,4}}:"
)
_BARE = re.compile(r"[^\s\"'`\\<>,;|(){}\[\]]{6,2048}+")
_PARAMETER_VALUE = re.compile(r"[^\s\"'`\\<>,;|(){}\[\]&#]{6,2048}+")
# What most values look like: in quotes, or up to the end of the line, and without spaces.
_SIMPLE = re.compile(
    rf"[ \t]{{0,64}}+(?:"
    rf"({_QUOTE})(?P<quoted>[^\s\"'`\\]{{6,2048}}+)\1"
    rf"|(?P<bare>[A-Za-z_][A-Za-z0-9_~+/=!@#%^*&$.:?-]{{5,2047}}+(?<![.:?!]))(?=[\r\n]|\\{{1,63}}+[nr]|\Z)"
    rf"|(?P<placeholder>\[redacted:[a-z0-9._-]{{1,1024}}:\d{{1,32}}\])"
    r")"
)
_CALLED = re.compile(r"[(\[{$]|<(?!/)")
_SCHEME = re.compile(r"(Bearer|Basic|Token|Bot|ApiKey|Key|Digest|DPoP) +(?=\S)", re.IGNORECASE)
_NUMBER = re.compile(r"\s{0,64}+-?([0-9]{8,40})(?=\s{0,8}(?:[,}\]\r\n]|\Z))")
_LINE = re.compile(r"[^\r\n\\\"']{1,4096}+")
_LINE_END = re.compile(r"[ \t]{0,8}(?:\Z|[\r\n]|\\+[nr]|#)")
_SPACES = re.compile(r"\s")
_COOKIE = re.compile(r"([^=;\s]{1,64}+)=([^;\s]{6,2048}+)")


_QUOTES = frozenset("\"'`")


@lru_cache(1024)
def kind_of(name: str) -> str:
    """A name as a placeholder's kind."""
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._")[:40] or "secret"


def find_assignments(text: str) -> Iterable[Span]:
    """Values of credential names."""
    reader = _Reader(text)
    return reader.spans() if reader.may_find() else ()


def may_hold_assignments(text: str) -> bool:
    """True if the text has a credential's name, with any value."""
    reader = _Reader(text)
    return any(reader.says(*reader.name(found)) is not None for found in matches(_NAMED, reader.lower))


class _Reader:
    """One text that is being read."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.lower = lower(text)
        self._closes: dict[str, int] = {}  # a quote's spelling -> where the next one stands

    def may_find(self) -> bool:
        """False if a short text has no part of a credential's name: most parts of streams are short."""
        return len(self.lower) > _SHORT or _NAMED.search(self.lower) is not None

    def spans(self) -> Iterator[Span]:
        text, behind = self._text, 0  # the end of the last value, which is not read again
        for found in matches(_NAMED, self.lower):
            if found.start() < behind:
                continue
            start, name = self.name(found)
            surely = self.says(start, name)
            if surely is None:
                continue
            how, at = found.lastgroup, found.end()
            if how == "option" and not self._is_option(start, name, found):
                continue
            if how == "sign" and text[at - 1] == ">" and not self._is_assigned(start, at):
                continue
            sure = surely and how != "option"
            simple = _SIMPLE.match(text, at)
            if simple and not self._is_cookie_line(name, at) and not (start > 0 and self._is_parameter(start)):
                how = simple.lastgroup or ""
                begin, behind = simple.span(how)
                if how != "placeholder" and (span := self._span(name, begin, behind, sure)):
                    yield span
                continue
            for span, end in self._values(found, start, name, surely, sure):
                behind = max(behind, end)
                if span:
                    yield span

    # Names

    def name(self, found: re.Match[str]) -> tuple[int, str]:
        """The whole name that was found a part of, and where it starts."""
        text, part = self._text, found.start()
        before = text[max(0, part - LONGEST_NAME) : part]
        start = part - len(before) + len(before.rstrip(_NAME_CHARACTERS))
        if start and text[start - 1] == "\\" and text[start] in "nrtu":
            start += 5 if text[start] == "u" else 1
        ends = found.start(found.lastgroup or 0)
        name = text[min(start, part) : ends].strip("-.")
        return start, name.rpartition(".")[2]

    def says(self, start: int, name: str) -> bool | None:
        """True: surely a credential's name; False: perhaps; None: no."""
        says = member(name)
        if says is Member.SECRET:
            return True
        if says is Member.MAYBE or (self._is_parameter(start) and secret_parameter(name)):
            return False
        return None

    def _is_parameter(self, start: int) -> bool:
        return start == 0 or self._text[start - 1] in "?&" or self._text.endswith("&amp;", 0, start)

    # Values

    def _is_cookie_line(self, name: str, at: int) -> bool:
        return self._text[at - 1] == ":" and "cookie" in name.lower()

    def _values(
        self, found: re.Match[str], start: int, name: str, surely: bool, sure: bool
    ) -> Iterator[tuple[Span | None, int]]:
        """The value, or the values of a list; each with the place from which to read on.

        `surely`: the name is a credential's; `sure`: and how the value is assigned leaves no doubt.
        """
        at = found.end()
        if self._is_cookie_line(name, at):
            lead = _LEAD.match(self._text, at)
            if lead and not lead["quote"]:
                yield from self._cookies(name, lead.end())
                return
        if self._text[at : at + 1] in _QUOTES:
            yield self._value(name, at, sure, False)
            return
        opened = _LIST.match(self._text, at) or _INNER.match(self.lower, at)
        if opened:
            at, sure = opened.end(), sure and self._text[opened.end() - 1] != ":"
        elif number := self._number(name, found, surely):
            yield number, number.end
            return
        dashes = _DASHES.match(self._text, at) if opened is None else None
        next_value = _NEXT if opened else _DASHES if dashes else None
        at = dashes.end() if dashes else at
        while True:
            span, end = self._value(name, at, sure, self._is_parameter(start) and start > 0)
            yield span, end
            more = next_value.match(self._text, end) if next_value else None
            if more is None or more.end() <= at:
                return
            at = more.end()

    def _is_option(self, start: int, name: str, found: re.Match[str]) -> bool:
        """`--password X`, `password X` as in .netrc, `the password is X`."""
        dashes = self._text.startswith("--", max(0, start)) or self._text[max(0, start - 2) : start] == "--"
        return dashes or name.lower() in ("password", "passwd") or found["option"].strip() == "is"

    def _is_assigned(self, start: int, at: int) -> bool:
        """`"password" => …`, `<password>…`, `<add name="password">…`."""
        return (
            self._text[at - 2] == "="
            or self._text[max(0, start - 1) : start] == "<"
            or self._text[at - 2 : at - 1] in ('"', "'")
        )

    def _number(self, name: str, found: re.Match[str], surely: bool) -> Span | None:
        """A number of 8 digits or more that is the value of a JSON member."""
        if not surely or self._text[found.end() - 1] != ":":
            return None
        number = _NUMBER.match(self._text, found.end())
        if number is None or is_dummy(number[1]):
            return None
        quote = self._text[found.start(found.lastgroup or 0) : found.end()].rstrip(": \t")
        quote = quote if quote.endswith('"') else ""
        return Span(*number.span(1), kind_of(name), number[1], Rank.NAMED, quote)

    def _value(self, name: str, at: int, surely: bool, parameter: bool) -> tuple[Span | None, int]:
        """The value that starts at `at`, if it is a credential; where to read on."""
        lead = _LEAD.match(self._text, at)
        assert lead is not None
        if lead["quote"]:
            return self._quoted(name, lead.end(), lead["quote"], surely)
        start = lead.end()
        if scheme := _SCHEME.match(self._text, start):
            return self._credentials(name, scheme)
        value = (_PARAMETER_VALUE if parameter else _BARE).match(self._text, start)
        if value is None:
            return None, start
        end = value.start() + len(value[0].rstrip(".:?!"))
        secret = self._text[start:end]
        if _CALLED.match(self._text, value.end()) or secret.startswith("$"):
            return None, value.end()
        sure = surely and not parameter and _LINE_END.match(self._text, value.end()) is not None
        return self._span(name, start, end, sure), value.end()

    def _quoted(self, name: str, start: int, quote: str, surely: bool) -> tuple[Span | None, int]:
        end = self._closing(start, quote)
        if end - start > _LONGEST_VALUE or end <= start:
            return None, start
        if scheme := _SCHEME.match(self._text, start, end):
            return self._credentials(name, scheme)
        span = self._span(name, start, end, surely)
        return span, start if span is None and _SPACES.search(self._text, start, end) else end

    def _credentials(self, name: str, scheme: re.Match[str]) -> tuple[Span | None, int]:
        value = _BARE.match(self._text, scheme.end())
        if value is None:
            return None, scheme.end()
        if scheme[1].lower() == "basic" and basic_password(value[0]) is not None:
            return Span(*value.span(), kind_of(name), value[0], Rank.NAMED), value.end()
        return self._span(name, *value.span(), False), value.end()

    def _cookies(self, name: str, at: int) -> Iterator[tuple[Span | None, int]]:
        line = _LINE.match(self._text, at)
        if line is None:
            return
        for cookie in _COOKIE.finditer(self._text, line.start(), line.end()):
            if looks_random(cookie[2]):
                yield Span(*cookie.span(2), kind_of(name), cookie[2], Rank.NAMED), cookie.end()
        yield None, line.end()

    def _span(self, name: str, start: int, end: int, surely: bool) -> Span | None:
        value = self._text[start:end]
        return Span(start, end, kind_of(name), value, Rank.NAMED) if is_credential(value, surely) else None

    def _closing(self, start: int, quote: str) -> int:
        """Where a string ends whose quotes are spelled `quote`: escaped once more for each level of JSON inside."""
        known = self._closes.get(quote, -1)
        if known < start:
            self._closes[quote] = known = _value_end(self._text, start, quote)
        return known


_MOST_SLASHES = 256


def _value_end(text: str, start: int, quote: str) -> int:
    mark, depth = quote[-1], len(quote) - 1
    at = find(text, mark, start)
    while at >= 0:
        before = text[max(start, at - _MOST_SLASHES) : at]
        slashes = len(before) - len(before.rstrip("\\"))
        if slashes == depth or (slashes - depth) % (2 * (depth + 1)) == 0:
            return at - depth
        if slashes < depth:  # the text around it ends: this one was cut short
            return at - slashes
        at = find(text, mark, at + 1)
    return len(text)


_SIGNATURE = re.compile(r"[?&]((?:[A-Za-z-]{1,24}?)?(?:[Ss]ig|[Ss]ignature))=([^\s\"'`\\<>,;|(){}\[\]&#]{6,2048}+)")
_GRANT = re.compile(
    r"(?:\A|[?&])(code|assertion|username|code_verifier|device_code|subject_token|actor_token|client_assertion)=([^&\s\"'<>#\\;${}]{8,2048}+)"
)
_CURL_USER = re.compile(r"(?:-u|--user)[ =]{1,4}\\{0,63}[\"']?([^\s:\"'\\]{1,64}+):([^\s\"'\\]{4,256}+)")


GRANT_MARKS = ("ig=", "ignature=", "grant_type=", "curl")


def find_grants(text: str) -> Iterator[Span]:
    """The signatures of URLs, the codes of an OAuth token request, and the password of `curl -u`."""
    marks = present(text, GRANT_MARKS)
    if "ig=" in marks or "ignature=" in marks:
        for found in matches(_SIGNATURE, text):
            if secret_parameter(found[1]) and is_credential(found[2], surely=False):
                yield Span(*found.span(2), kind_of(found[1]), found[2], Rank.NAMED)
    if "grant_type=" in marks:
        for found in matches(_GRANT, text):
            if not is_dummy(found[2]):
                yield Span(*found.span(2), kind_of(found[1]), found[2], Rank.NAMED)
    if "curl" in marks:
        for found in matches(_CURL_USER, text):
            if is_credential(found[2], surely=True):
                yield Span(*found.span(2), "password", found[2], Rank.NAMED)


SCHEMES = {
    "earer ": re.compile(r"[Bb]earer ([A-Za-z0-9._~+/-]{16,4096}+={0,9})"),
    "earer%20": re.compile(r"[Bb]earer%20((?:[A-Za-z0-9._~+/-]|%2[BbFf]|%7[Ee]){16,4096}+(?:=|%3[Dd]){0,9})"),
    "earer+": re.compile(r"[Bb]earer\+((?:[A-Za-z0-9._~+/-]|%2[BbFf]|%7[Ee]){16,4096}+(?:=|%3[Dd]){0,9})"),
    "asic ": re.compile(r"[Bb]asic ([A-Za-z0-9+/]{8,4096}+={0,2})"),
}
_SCHEMES_REACH = 3 * 4096 + 64


def find_schemes(text: str) -> Iterator[Span]:
    """What follows `Bearer` or `Basic`, in a header or anywhere else."""
    for literal in present(text, SCHEMES):
        for found in matches(SCHEMES[literal], text, _SCHEMES_REACH):
            secret = unquote(found[1]) if "%" in found[1] else found[1]
            if literal == "asic ":
                if basic_password(secret) is not None:
                    yield Span(*found.span(1), "basic", secret, Rank.KEY)
            elif looks_random(secret):
                yield Span(*found.span(1), "bearer", secret, Rank.KEY)


def basic_password(encoded: str) -> str | None:
    """The password in the credentials of basic authentication; None if it is something else."""
    try:
        user, colon, password = b64decode(encoded, validate=True).decode().partition(":")
    except ValueError:
        return None
    return password if colon and user.isprintable() and password.isprintable() else None
