"""Redacts headers, and remembers the results: a client sends mostly the same headers at every call."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from wiretape.tape.redaction import Redactor

_MOST = 512  # headers that are remembered

Pair = tuple[str, str]


class HeaderCache:
    """Learns credentials from heads, and takes them out."""

    def __init__(self, redactor: Redactor, on_new: Callable[[Iterable[Pair]], None] | None = None) -> None:
        """`on_new` gets redacted headers that were not seen before."""
        self._redactor = redactor
        self._on_new = on_new
        self._known: dict[Pair, Pair] = {}
        self._search: object = None

    def headers(self, pairs: Iterable[Pair], url: str = "") -> list[Pair]:
        """Headers (names in lower case, text that JSON can carry) without secrets, after learning from them."""
        given = [(clean_text(name).lower(), clean_text(value)) for name, value in pairs]
        known = self._known
        new = [pair for pair in given if pair not in known]
        if new or "?" in url or "@" in url:
            self._redactor.learn(new, url)
        if self._redactor.search() is not self._search:  # new secrets are known: search the headers again
            self._search, known = self._redactor.search(), {}
            self._known = known
            new = given
        if len(known) + len(new) > _MOST:
            known.clear()
            new = given
        if new:
            clean = self._redactor.headers(new)
            known.update(zip(new, clean, strict=True))
            if self._on_new is not None:
                self._on_new(clean)
        return [known[pair] for pair in given]


def clean_text(text: str) -> str:
    """Text that JSON can carry. Bytes that are not UTF-8 (lone surrogates in mitmproxy) are read as Latin-1."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass" if _odd(text) else "surrogateescape").decode("latin-1")
    return text


def _odd(text: str) -> bool:
    """Whether it has surrogates that stand for no byte."""
    return any("\ud800" <= char <= "\udfff" and not "\udc80" <= char <= "\udcff" for char in text)
