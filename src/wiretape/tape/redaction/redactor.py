"""The Redactor: replaces the secrets in everything that is written to a tape or its journal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import quote, unquote

from wiretape.errors import UsageError
from wiretape.model.jsonvalue import Json
from wiretape.tape.redaction.arguments import Regions
from wiretape.tape.redaction.assignments import basic_password, kind_of
from wiretape.tape.redaction.chunks import unfinished
from wiretape.tape.redaction.json_values import JsonRedaction, ValuePlace, redact_json
from wiretape.tape.redaction.known_secrets import WIDE, Learned
from wiretape.tape.redaction.names import Keep, keep_header, secret_parameter
from wiretape.tape.redaction.placeholders import PLACEHOLDER, PLAIN, Placeholders, is_placeholder
from wiretape.tape.redaction.scanning import Rank, Span
from wiretape.tape.redaction.search import Care, Search, is_kept
from wiretape.tape.redaction.secret_likeness import has_space, looks_random, worth_learning
from wiretape.tape.redaction.streams import redact_frames

_CLEAN_MOST = 4096  # remembered texts in which nothing was found
_SLICE = 1024 * 1024  # bytes that are searched at a time
_LONG = 512  # from this length on it pays to remember a text
_MIXED = 20
_MOST_PASSES = 8  # over one text: what a secret touched may be one, too, now that it is gone
_SCHEME = re.compile(r"(Bearer|Basic|Token|Bot|ApiKey|Key|DPoP|AWS4-HMAC-SHA256)(\s+)(?=\S)", re.IGNORECASE)
_COOKIE_ATTRIBUTES = frozenset({"path", "domain", "expires", "max-age", "samesite", "priority", "version"})
_QUERY_VALUE = re.compile(r"([?&;#])([^=?&;#]+)=([^&;#]+)")
_URL_PART = re.compile(r"[^/?#&;=@]+")
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
    """Replaces secrets. One per tape: it remembers credentials, and the same one always gets the same placeholder.

    Every method may be called from several threads at the same time. What one thread learns, the others find in the
    texts that they search from then on. `tool_arguments`: also replace the credentials that a model wrote itself into
    the arguments of tool calls; the program then gets other arguments in a replay than it got when it was recorded.
    """

    def __init__(self, patterns: Sequence[str] = (), tool_arguments: bool = False) -> None:
        self._patterns = _compile(patterns)
        self.tool_arguments = tool_arguments
        self._learned = Learned()
        self._placeholders = Placeholders()
        self._clean: dict[int, int] = {}  # mark of some bytes -> how much was known when nothing was found in them
        self._search = Search(self._learned, self._patterns)
        self._wrote = False
        self._late: dict[str, str] = {}
        self._written: dict[str, str] = {}

    # Counts and notes

    @property
    def kinds(self) -> set[str]:
        """The kinds of secrets that were replaced."""
        return set(self.counts)

    @property
    def counts(self) -> dict[str, int]:
        """How many times a secret of each kind was replaced."""
        return self._placeholders.counted()

    def forget_counts(self) -> None:
        """Start the counts again from 0, after a rehearsal."""
        self._placeholders.forget_counts()

    @property
    def written(self) -> list[str]:
        """The names of credentials that a model wrote into tool arguments and that were kept, one for each value."""
        return sorted(name for value, name in self._written.copy().items() if self._learned.kind(value) is None)

    def note_written(self, name: str, value: str) -> None:
        """Remember a credential that was kept because a model wrote it."""
        self._written.setdefault(value, name)

    @property
    def late(self) -> dict[str, str]:
        """Secrets that were first seen after something had been written: secret -> kind. See `leaks`."""
        return self._late.copy()

    def leaks(self, written: bytes) -> set[str]:
        """The kinds of late secrets in bytes that were written before these were known."""
        late = self.late
        text = written.decode("utf-8", "surrogateescape")
        return {span.kind for span in self._learned.occurrences(text) if span.secret in late}

    def unfinished(self, data: bytes) -> int:
        """How many bytes at the end of a chunk may be the start of a secret that the next chunk continues."""
        learned = self._learned
        return unfinished(data, learned.odd, learned.held, learned.occurrences)

    def resume(self, text: str) -> None:
        """Number on after the placeholders in a tape that is continued or rewritten."""
        self._placeholders.resume(text)

    # Learning

    def learn(self, headers: Iterable[tuple[str, str]], url: str) -> None:
        """Remember the credentials in a message's headers and URL, to find them in other places, too."""
        for name, value in headers:
            name = name.lower()
            if keep_header(name) is Keep.CREDENTIAL:
                for secret in _header_secrets(name, value):
                    self.learn_value(secret, kind_of(name), passing=name.startswith("set-cookie"))
        if "=" in url or "@" in url:
            for secret, kind in _url_secrets(url):
                self.learn_value(secret, kind)

    def learn_value(self, secret: str, kind: str, passing: bool = False) -> None:
        """Remember one credential, if it is long enough and not a dummy value."""
        if worth_learning(secret) and self._learned.add(secret, kind, passing) and self._wrote and not passing:
            self._late[secret] = kind

    def learn_named(self, secret: str, kind: str) -> None:
        """Remember the value of a credential's name, if it looks random. A common word would be replaced everywhere."""
        if "\\" not in secret and not has_space(secret) and (looks_random(secret) or _is_mixed(secret)):
            self.learn_value(secret, kind)

    def learn_found(self, span: Span) -> None:
        """Remember a secret that was found in a text by its shape or its name."""
        if span.rank is Rank.KEY and not has_space(span.secret):
            self.learn_value(span.secret, span.kind)
        elif span.rank is Rank.NAMED:
            self.learn_named(span.secret, span.kind)
            if span.kind == "basic" and (password := basic_password(span.secret)):
                self.learn_named(password, span.kind)

    # Redacting

    def headers(self, pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Headers with the values that are on the allow list; other values are replaced, and every name is kept."""
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
        return _URL_PART.sub(self._decoded, url) if "%" in url else url

    def _decoded(self, match: re.Match[str]) -> str:
        """A part of a URL, decoded if only that shows a secret: any byte may be percent-encoded."""
        if "%" not in match[0]:
            return match[0]
        plain = unquote(match[0])
        clean = self.text(plain)
        return match[0] if clean is plain else quote(clean, safe="[]:")

    def text(self, text: str) -> str:
        """A text without secrets; the same object if it has none."""
        self._wrote = True
        return self.redacted(text, self.search())

    def data(self, data: bytes, regions: Regions | None = None) -> bytes:
        """Raw bytes without secrets; the same object if they have none.

        They may be any part of a JSON body. `regions`: of that body, with these bytes added last.
        """
        self._wrote = True
        if len(data) > 2 * _SLICE and regions is None and not self._patterns:  # a pattern may match any length
            return self._sliced(data)
        if self.known_clean(data):
            return data
        text = data.decode("utf-8", "surrogateescape")
        search = self.search()
        made, version = self._redacted_chunk(text, search, data if regions is None else regions)
        if self._learned.version != version and self._learned.are_in(made):
            made = self.redacted(made, self.search(), Care.KNOWN)
        if made is text:
            self.remember_clean(data, "raw", search)
            return data
        return made.encode("utf-8", "surrogateescape")

    def _redacted_chunk(self, text: str, search: Search, body: bytes | Regions) -> tuple[str, int]:
        """The text without what the search finds in it as a part of a body, except where a model wrote it.

        And how many secrets were known when it was searched for them last.
        """
        version = self._learned.version
        found = search.raw_spans(text)
        if not found:
            return text, version
        if not self.tool_arguments and any(span.rank is Rank.NAMED for span in found):
            written = (Regions(body) if isinstance(body, bytes) else body).last()
            kept = [span for span in found if is_kept(span, written)]
            for span in kept:
                self.note_written(span.kind, span.secret)
            if kept:
                return self._splice(text, [span for span in found if not is_kept(span, written)]), version
        return self._splice_all(text, found, search, version)

    def _splice_all(self, text: str, spans: Sequence[Span], search: Search, version: int) -> tuple[str, int]:
        for _ in range(_MOST_PASSES):
            if not spans:
                break
            text = self._splice(text, spans)
            version = self._learned.version
            spans = search.raw_spans(text, Care.WRITTEN)
        return text, version

    def _sliced(self, data: bytes) -> bytes:
        """The same for much data, a part at a time: as a text it takes up to four times the memory."""
        search, regions = self.search(), Regions()
        pieces: list[bytes] = []  # changed parts, and the bytes between them
        start = kept = 0
        while start < len(data):
            part = data[start : start + _SLICE]
            end = start + len(part)
            if end < len(data):
                end -= self.unfinished(part)
                end = end if end > start else start + len(part)
            part = data[start:end]
            regions.add(part)
            clean = self.data(part, regions)
            if clean is not part:
                pieces += [data[kept:start], clean]
                kept = end
            start = end
        made = b"".join([*pieces, data[kept:]]) if pieces else data
        again = self.search() is not search and self.knows(made.decode("utf-8", "surrogateescape"))
        return self._sliced(made) if again else made

    def value(self, value: Json) -> Json:
        """A JSON value without secrets; the same object if it has none.

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
        """The current search: another object as soon as more secrets are known."""
        if self._search.version != self._learned.version:
            self._search = Search(self._learned, self._patterns)
        return self._search

    def knows(self, text: str) -> bool:
        """Whether a text holds a known credential."""
        return self._learned.are_in(text)

    def places(self, value: Json, path: str = "") -> list[tuple[str, str]]:
        """The places in a JSON value at which something would be replaced, and its kind."""
        found: list[tuple[str, str]] = []
        name = path.rpartition(".")[2].partition("[")[0]
        redaction = JsonRedaction(self, self.search(), lambda where, kind: found.append((where, kind)))
        redaction.of(value, ValuePlace(name, path=path))
        return found

    def placeholder(self, secret: str, kind: str) -> str:
        """The placeholder of a secret: always the same, with the kind under which it was first seen."""
        return self._placeholders.of(secret, self._learned.kind(secret) or kind)

    def redacted(self, text: str, search: Search, care: Care = Care.ALL) -> str:
        """The text without the secrets that the search finds; the same object if it finds none."""
        if care is Care.WRITTEN:
            self.note_named(text, search)
        for _ in range(_MOST_PASSES):
            spans = search.spans(text, care)
            if not spans:
                break
            text = self._splice(text, spans)
            care = min(care, Care.WRITTEN)  # a second pass finds known secrets and keys: names were read by the first
        return text

    def redacted_raw(self, text: str, search: Search) -> str:
        """The same for a part of a message that may be JSON."""
        return self._splice_all(text, search.raw_spans(text), search, 0)[0]

    def _splice(self, text: str, spans: Sequence[Span]) -> str:
        pieces, at = [], 0
        for span in spans:
            pieces += [text[at : span.start], self.replacement(span, text)]
            at = span.end
        return "".join([*pieces, text[at:]])

    def replacement(self, span: Span, text: str) -> str:
        """The placeholder for a span, whose secret is remembered."""
        self.learn_found(span)
        placeholder = self.placeholder(span.secret, span.kind)
        if WIDE in text[span.start : span.end] and WIDE not in span.secret:
            return WIDE.join(placeholder)  # so that what follows is UTF-16 still
        return f"{span.quote}{placeholder}{span.quote}" if span.quote else placeholder

    def note_named(self, text: str, search: Search) -> None:
        """Remember the credentials that are kept in a text, because a model wrote it as a tool's arguments."""
        for span in search.spans(text):
            if span.rank is Rank.NAMED:
                self.note_written(span.kind, span.secret)

    def known_clean(self, data: bytes, what: str = "raw") -> bool:
        """Whether these bytes were searched before without a find, and hold no credential that was learned since.

        The bytes are identified by a hash of 64 bits, keyed by the process.
        """
        if len(data) < _LONG:
            return False
        mark = hash((what, data))
        version = self._clean.get(mark)
        if version is None:
            return False
        now = self._learned.version
        if version != now and self._learned.are_in(data.decode("utf-8", "surrogateescape"), version):
            return False
        self._clean[mark] = now
        return True

    def remember_clean(self, data: bytes, what: str, search: Search) -> None:
        """Remember that the search found nothing in these bytes."""
        if len(data) >= _LONG:
            if len(self._clean) >= _CLEAN_MOST:
                self._clean.clear()
            self._clean[hash((what, data))] = search.version


def _is_mixed(secret: str) -> bool:
    """One long token of capitals, small letters and digits, which by chance may read like words."""
    classes = str.isupper, str.islower, str.isdigit
    return len(secret) >= _MIXED and secret.isalnum() and all(any(map(test, secret)) for test in classes)


def _header_secrets(name: str, value: str) -> Iterator[str]:
    """The secrets in a credential header: what follows the scheme, each cookie's value, both halves of Basic."""
    if "cookie" in name:
        for part in value.split(";"):
            key, _, cookie = part.strip().partition("=")
            if key.lower() not in _COOKIE_ATTRIBUTES and looks_random(cookie):
                yield cookie.strip('"')
        return
    if name == "sec-websocket-protocol":
        for protocol in value.split(","):
            key = protocol.partition("api-key.")[2]
            if key or looks_random(protocol):
                yield key or protocol.strip()
        return
    scheme = _SCHEME.match(value)
    if scheme is None:
        yield value
        return
    if not scheme[1].upper().startswith("AWS4"):
        yield value[scheme.end() :]
    if scheme[1].lower() == "basic":
        yield basic_password(value[scheme.end() :]) or ""


def _url_secrets(url: str) -> Iterator[tuple[str, str]]:
    userinfo = _URL_USERINFO.match(url)
    if userinfo:
        yield unquote(userinfo[2].partition(":")[2] or userinfo[2]), "url-password"
    query = _QUERY.search(url)
    for match in _QUERY_VALUE.finditer(url[query.start() :] if query else ""):
        name = unquote(match[2])
        if secret_parameter(name) and looks_random(unquote(match[3])):
            yield unquote(match[3]), kind_of(name)
