"""The Redactor: takes secrets out of everything that is written to a tape or its journal.

This module puts the parts together: names that say "secret" (redact_names), what secrets look like (redact_shapes),
values that were seen as credentials (redact_learned), JSON (redact_json), streams (redact_frames), and what is
written instead (redact_placeholders).
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import quote, unquote

from wiretape.errors import UsageError
from wiretape.model.jsonvalue import Json
from wiretape.tape.redact_chunks import LONGEST, unfinished
from wiretape.tape.redact_frames import redact_frames
from wiretape.tape.redact_json import redact_json
from wiretape.tape.redact_learned import WIDE, Learned, worth_learning
from wiretape.tape.redact_members import KEY_RANK, MEMBER_RANK, Span, kind_of
from wiretape.tape.redact_names import Keep, keep_header, secret_parameter
from wiretape.tape.redact_placeholders import PLACEHOLDER, PLAIN, Placeholders, is_placeholder, matches
from wiretape.tape.redact_search import Care, Search

__all__ = ["Redactor", "is_placeholder", "matches"]

_CLEAN_MOST = 4096  # remembered texts in which nothing was found
_SLICE = 1024 * 1024  # bytes that are searched at a time
_LONG = 512  # from this length on it pays to remember a text
_SCHEME = re.compile(r"(Bearer|Basic|Token|Bot|ApiKey|Key|DPoP|AWS4-HMAC-SHA256)(\s+)(?=\S)", re.IGNORECASE)
_COOKIE_ATTRIBUTES = frozenset({"path", "domain", "expires", "max-age", "samesite", "priority", "version"})
_QUERY_VALUE = re.compile(r"([?&;#])([^=?&;#]+)=([^&;#]+)")
_ENCODED = re.compile(r"[^/?#&;=@]*%[^/?#&;=@]*")
_QUERY = re.compile(r"[?#]")
_URL_USERINFO = re.compile(r"\A([a-zA-Z][a-zA-Z0-9+.-]*://)([^/?#@]+)@")


def _compile(patterns: Sequence[str]) -> list[re.Pattern[str]]:
    compiled = []
    for pattern in patterns:
        try:
            compiled.append(re.compile(pattern))
        except re.error as error:
            raise UsageError(f"the redaction pattern {pattern!r} is not a regular expression: {error}") from None
    return compiled


class Redactor:
    """Replaces secrets. One per tape; it remembers the credentials it saw, and says the same thing for the same one.

    Two threads may use it: the one that forwards traffic (`learn`, `data`), and the one that writes the tape.
    """

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        self._patterns = _compile(patterns)
        self._learned = Learned()
        self._placeholders = Placeholders()
        self._clean: dict[int, int] = {}  # mark of some bytes -> how much was known when nothing was found in them
        self._search = Search((), self._patterns)
        self._search_version = 0
        self._wrote = False
        self._late: dict[str, str] = {}

    # What was seen and done

    @property
    def kinds(self) -> set[str]:
        """The kinds of secrets that were replaced."""
        return set(self._placeholders.counts)

    @property
    def counts(self) -> dict[str, int]:
        """How many times a secret of each kind was replaced."""
        return dict(self._placeholders.counts)

    def forget_counts(self) -> None:
        """Count anew, after a rehearsal."""
        self._placeholders.counts.clear()

    @property
    def late(self) -> dict[str, str]:
        """Secrets that were first seen after something had been written: secret -> kind. See `leaks`."""
        return dict(self._late)

    def leaks(self, written: bytes) -> set[str]:
        """The kinds of late secrets that stand in bytes written before they were known."""
        forms = self._learned.forms
        return {kind for form, secret, kind in forms if secret in self._late and form.encode() in written}

    @property
    def longest_secret(self) -> int:
        """How long a secret can be that is split over two chunks of raw bytes."""
        return max(LONGEST, self._learned.longest)

    def unfinished(self, data: bytes) -> int:
        """How many bytes at the end of a chunk may begin a secret that goes on in the next: hold these back."""
        return unfinished(data, self._learned.odd)

    def resume(self, text: str) -> None:
        """Number on after the placeholders in a tape that is continued or rewritten."""
        self._placeholders.resume(text)

    # Learning

    def learn(self, headers: Iterable[tuple[str, str]], url: str) -> None:
        """Remember the credentials in a message's headers and URL, so as to find them wherever else they occur."""
        for name, value in headers:
            name = name.lower()
            if keep_header(name) is Keep.CREDENTIAL:
                for secret in _header_secrets(name, value):
                    self.learn_value(secret, kind_of(name), passing=name.startswith("set-cookie"))
        if "=" in url or "@" in url:
            for secret, kind in _url_secrets(url):
                self.learn_value(secret, kind)

    def learn_value(self, secret: str, kind: str, passing: bool = False) -> None:
        """Remember one credential."""
        if worth_learning(secret) and self._learned.add(secret, kind, passing) and self._wrote and not passing:
            self._late[secret] = kind

    def learn_found(self, span: Span) -> None:
        """Remember what was found by its name or shape: elsewhere nothing may tell what it is."""
        secret = span.secret
        if span.rank not in (KEY_RANK, MEMBER_RANK) or "\\" in secret or any(c.isspace() for c in secret):
            return
        if span.kind == "bearer" and not any(c.isdigit() for c in secret):
            return  # it may be a word after all, as in a program's text
        if worth_learning(secret) and self._learned.add(secret, span.kind, found=span.rank == KEY_RANK):
            self._late[secret] = span.kind

    # Redacting

    def headers(self, pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Headers with only the values that are on the allow list; every name stays."""
        self._wrote = True
        return [(name, self._header(name.lower(), value)) for name, value in pairs]

    def _header(self, name: str, value: str) -> str:
        keep = keep_header(name)
        if keep is Keep.YES:
            return self.text(value)
        if keep is Keep.URL:
            return self.url(value, every=True)
        if is_placeholder(value) or (keep is Keep.CREDENTIAL and is_placeholder(_SCHEME.sub("", value, count=1))):
            return value
        if keep is Keep.CREDENTIAL and value:
            return self._credential(name, value)
        self._placeholders.count("header")
        return PLAIN

    def _credential(self, name: str, value: str) -> str:
        kind = kind_of(name)
        if name.startswith("set-cookie"):
            self._placeholders.count(kind)
            return f"[redacted:{kind}]"
        scheme = _SCHEME.match(value)
        if scheme is None:
            return self.placeholder(value, kind)
        if scheme[1].upper().startswith("AWS4"):  # signed anew for every message
            self._placeholders.count(kind)
            return f"{scheme[1]} [redacted:{kind}]"
        return value[: scheme.end()] + self.placeholder(value[scheme.end() :], kind)

    def url(self, url: str, every: bool = False) -> str:
        """A URL without its credentials; `every`: without any query value."""
        self._wrote = True

        def value(match: re.Match[str]) -> str:
            name = unquote(match[2])
            if "redacted" in match[3] and PLACEHOLDER.search(match[3]):
                return match[0]
            if every or secret_parameter(name):
                return f"{match[1]}{match[2]}={self.placeholder(unquote(match[3]), kind_of(name))}"
            return match[0]

        def userinfo(match: re.Match[str]) -> str:
            if PLACEHOLDER.fullmatch(match[2]):
                return match[0]
            given = self.placeholder(unquote(match[2].partition(":")[2] or match[2]), "url-password")
            return f"{match[1]}{given.replace('[', '%5B').replace(']', '%5D')}@"

        if "@" in url:
            url = _URL_USERINFO.sub(userinfo, url)
        if query := _QUERY.search(url):
            url = url[: query.start()] + _QUERY_VALUE.sub(value, url[query.start() :])
        url = self.text(url)
        return _ENCODED.sub(self._decoded, url) if "%" in url else url

    def _decoded(self, match: re.Match[str]) -> str:
        """A part of a URL, decoded if only that shows a secret: any byte may be percent-encoded."""
        plain = unquote(match[0])
        clean = self.text(plain)
        return match[0] if clean is plain else quote(clean, safe="[]:")

    def text(self, text: str) -> str:
        """A text without secrets; the very same object if there are none."""
        self._wrote = True
        made = text
        search: Search | None = None
        while search is not self.search():  # again if more is known now
            search = self.search()
            made = self.redacted(made, search)
        return made

    def data(self, data: bytes) -> bytes:
        """Raw bytes without secrets; the very same object if there are none."""
        self._wrote = True
        if len(data) > 2 * _SLICE and not self._patterns:  # a pattern may match any length
            return self._sliced(data)
        if self.known_clean(data):
            return data
        text = data.decode("utf-8", "surrogateescape")
        redacted = text
        search: Search | None = None
        while search is not self.search():  # again if more is known now
            search = self.search()
            redacted = self.redacted_raw(redacted, search)
        if redacted is text:
            self.remember_clean(data)
            return data
        return redacted.encode("utf-8", "surrogateescape")

    def _sliced(self, data: bytes) -> bytes:
        """The same for much data, a part at a time: as a text it takes up to four times the memory."""
        known = self.search()
        pieces: list[bytes] = []  # what was changed, and what stands between
        start = kept = 0
        while start < len(data):
            part = data[start : start + _SLICE]
            end = start + len(part)
            if end < len(data):
                end -= self.unfinished(part)
                end = end if end > start else start + len(part)
            part = data[start:end]
            clean = self.data(part)
            if clean is not part:
                pieces += [data[kept:start], clean]
                kept = end
            start = end
        made = b"".join([*pieces, data[kept:]]) if pieces else data
        again = self.search() is not known and self.search().knows(made)
        return self._sliced(made) if again else made

    def value(self, value: Json) -> Json:
        """A JSON value without secrets; the very same object if there are none.

        Parts may come alone: an element of a list, or the operations of a JSON patch, whose paths are looked at.
        """
        self._wrote = True
        return redact_json(self, value)

    def frames(self, frames: Sequence[bytes]) -> tuple[Sequence[bytes], tuple[int, ...]]:
        """A stream's frames without secrets, whole or split over frames, and the numbers of rewritten frames."""
        self._wrote = True
        return redact_frames(self, frames)

    # For the parts

    def search(self) -> Search:
        """What is looked for now."""
        version = self._learned.version
        if self._search_version != version:
            self._search, self._search_version = Search(self._learned.forms, self._patterns), version
        return self._search

    def placeholder(self, secret: str, kind: str) -> str:
        """The same for the same secret, wherever it stands: named for where it was first seen."""
        return self._placeholders.of(secret, self._learned.kind(secret) or kind)

    def redacted(self, text: str, search: Search, care: Care = Care.ALL) -> str:
        """The text without what the search finds; the very same object if that is nothing."""
        while spans := search.spans(text, care):  # again: what a secret touched may be one, too, now that it is gone
            text = self._splice(text, spans)
        return text

    def redacted_raw(self, text: str, search: Search) -> str:
        """The same for a part of a message that may be JSON."""
        while spans := search.raw_spans(text):
            text = self._splice(text, spans)
        return text

    def _splice(self, text: str, spans: Sequence[Span]) -> str:
        pieces, at = [], 0
        for span in spans:
            self.learn_found(span)
            placeholder = self.placeholder(span.secret, span.kind)
            if WIDE in text[span.start : span.end] and WIDE not in span.secret:
                placeholder = WIDE.join(placeholder)  # so that what follows is UTF-16 still
            pieces += [text[at : span.start], placeholder]
            at = span.end
        return "".join([*pieces, text[at:]])

    def known_clean(self, data: bytes, what: str = "raw") -> bool:
        """Whether nothing was found in these bytes before, and nothing that was learnt since stands in them.

        A hash of 64 bits, keyed by the process, stands for the bytes.
        """
        if len(data) < _LONG:
            return False
        mark = hash((what, data))
        version = self._clean.get(mark)
        if version is None or self._learned.in_since(data, version):
            return False
        self._clean[mark] = self._learned.version
        return True

    def remember_clean(self, data: bytes, what: str = "raw") -> None:
        if len(data) >= _LONG:
            if len(self._clean) >= _CLEAN_MOST:
                self._clean.clear()
            self._clean[hash((what, data))] = self._search_version


def _header_secrets(name: str, value: str) -> Iterator[str]:
    """The secrets in a credential header: what follows the scheme, each cookie's value, both halves of Basic."""
    if "cookie" in name:
        for part in value.split(";"):
            key, _, cookie = part.strip().partition("=")
            if key.lower() not in _COOKIE_ATTRIBUTES:
                yield cookie.strip('"')
        return
    if name == "sec-websocket-protocol":
        for protocol in value.split(","):
            yield protocol.partition("api-key.")[2] or protocol.strip()
        return
    scheme = _SCHEME.match(value)
    if scheme is None:
        yield value
        return
    if not scheme[1].upper().startswith("AWS4"):
        yield value[scheme.end() :]
    if scheme[1].lower() == "basic":
        yield from _basic_password(value[scheme.end() :])


def _basic_password(encoded: str) -> Iterator[str]:
    try:
        yield b64decode(encoded).decode().partition(":")[2]
    except ValueError:
        return


def _url_secrets(url: str) -> Iterator[tuple[str, str]]:
    userinfo = _URL_USERINFO.match(url)
    if userinfo:
        yield unquote(userinfo[2].partition(":")[2] or userinfo[2]), "url-password"
    query = _QUERY.search(url)
    for match in _QUERY_VALUE.finditer(url[query.start() :] if query else ""):
        name = unquote(match[2])
        if secret_parameter(name):
            yield unquote(match[3]), kind_of(name)
