"""Credential values that were seen, and an index that finds them in any text at a cost that does not grow with them.

A text is cut into blocks of 8 characters. Every spelling of a secret has at least 16 characters, so that an occurrence
covers one whole block at least. The index knows the 8 blocks that a spelling can show, one for each offset; only where
a text has one of these blocks is the whole spelling compared.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from functools import cache
from itertools import chain
from threading import Lock
from urllib.parse import quote

from wiretape.tape.redaction.chunks import IS_TOKEN
from wiretape.tape.redaction.scanning import Rank, Span, present

WIDE = "\0"  # between the characters of an ASCII text in UTF-16
_BLOCK = 8
_LEVELS = 4  # of JSON in strings of JSON
_MOST_SPELLED = 256  # secrets whose every spelling is looked for; of later ones only the plain spellings
_MOST_IN_URLS = 2048  # secrets of which every spelling in URLs is looked for
_MOST_ODD = 64  # spellings that are compared with the end of each chunk one by one
_FEW = 48  # spellings, or new secrets: so many are looked for one by one
_PLAIN = re.compile(r"[A-Za-z0-9_.~-]*")
_ESCAPES = re.compile("%..")
_PERCENT = {code: quote(chr(code), safe="") for code in range(128)}
_ESCAPED = re.compile(r"[^ !#-\[\]-~]").search  # what JSON may spell in another way


def spellings(secret: str, plain: bool = False, few: bool = False) -> set[str]:
    """The ways in which a secret may be written: itself, in a URL, in JSON (in JSON, in JSON), in base64, UTF-16.

    `plain`: only itself, in a URL and in JSON. `few`: in a URL only as most programs write it.
    """
    forms = {secret}
    if not _PLAIN.fullmatch(secret):
        forms |= {_percent_encoded(secret)} if few else _in_urls(secret)
        if _ESCAPED(secret):
            forms |= _in_json(secret)
    if plain:
        return forms
    data = secret.encode("utf-8", "surrogatepass")
    forms |= {"".join(f"%{byte:{digits}}" for byte in data) for digits in ("02X", "02x")}
    forms.add(WIDE.join(secret))  # big- and little-endian: they differ at the ends
    return forms.union(_base64_cores(data))


def _in_urls(secret: str) -> set[str]:
    upper = _percent_encoded(secret)
    forms = {upper, *(_ESCAPES.sub(_lower, form) for form in (upper, secret) if "%" in form)}
    if "/" in secret:
        forms |= {re.sub("(?i:%2f)", "/", form) for form in forms}
    return forms | {form.replace("%20", "+") for form in forms if " " in secret}


def _percent_encoded(secret: str) -> str:
    return secret.translate(_PERCENT) if secret.isascii() else quote(secret, safe="")


def _lower(found: re.Match[str]) -> str:
    return found[0].lower()


def _in_json(secret: str) -> set[str]:
    level, forms = {secret}, set()
    for _ in range(_LEVELS):
        level = {json.dumps(form, ensure_ascii=ascii_only)[1:-1] for form in level for ascii_only in (False, True)}
        forms |= level
    return forms


def _base64_cores(data: bytes) -> Iterator[str]:
    """The base64 of `data` inside the base64 of a longer text, at each of the three offsets."""
    for offset in range(3):
        encoded = base64.b64encode(b"\0" * offset + data).decode()
        skip = (0, 2, 3)[offset]
        spare = (offset + len(data)) % 3
        whole = encoded.rstrip("=")
        core = whole[skip : len(whole) - 1 if spare else len(whole)]
        yield core
        yield core.replace("+", "-").replace("/", "_")


@cache
def _tail(length: int) -> tuple[tuple[int, ...], tuple[tuple[tuple[int, int]], ...]]:
    """The offsets of the blocks that are known of a spelling, and their entries in the index.

    They are near its end, where secrets differ more than in the beginning.
    """
    offsets = tuple(range(length - 2 * _BLOCK + 1, length - _BLOCK + 1))
    return offsets, tuple(((offset, length),) for offset in offsets)


class Learned:
    """The secrets seen so far; none is ever forgotten. Threads may add and search at the same time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kinds: dict[str, str] = {}  # secret -> its kind, in the order in which they were seen
        self._added: list[tuple[str, ...]] = []  # the spellings of each
        self._forms: dict[str, str] = {}  # spelling -> secret
        self._blocks: dict[str, tuple[tuple[int, int], ...]] = {}  # block -> (its offset in a spelling, the length)
        self.odd: tuple[bytes, ...] = ()  # spellings with other characters than tokens have
        self.held = 0  # bytes to hold back from each chunk when there are too many to compare
        self._longest_odd = 0
        self._few: tuple[str, ...] = ()  # all spellings, while they are few

    @property
    def version(self) -> int:
        """How many secrets are known."""
        return len(self._added)

    def add(self, secret: str, kind: str, passing: bool = False) -> bool:
        """Remember a secret of 16 characters or more; True if it is new.

        `passing`: a server made it up for this once, as cookies are: only its plain spellings are looked for.
        """
        with self._lock:
            if secret in self._kinds:
                return False
            self._kinds[secret] = kind
            if _PLAIN.fullmatch(secret) and (passing or len(self._kinds) > _MOST_SPELLED):
                forms: tuple[str, ...] = (secret,)
            else:
                known = len(self._kinds)
                forms = tuple(spellings(secret, passing or known > _MOST_SPELLED, known > _MOST_IN_URLS))
                self._note_odd([form.encode("utf-8", "surrogatepass") for form in forms if not IS_TOKEN(form)])
            for form in forms:
                self._index(form, secret)
            self._few = tuple(self._forms) if len(self._forms) <= _FEW else ()
            self._added.append(forms)
            return True

    def _note_odd(self, forms: list[bytes]) -> None:
        """Note spellings that a run of token characters does not hold. Of very many only the greatest length counts."""
        if forms:
            self._longest_odd = max(self._longest_odd, *map(len, forms))
            if self.held or len(self.odd) + len(forms) > _MOST_ODD:
                self.held = self._longest_odd - 1  # first: another thread must find one of the two
                self.odd = ()
            else:
                self.odd = (*self.odd, *forms)

    def _index(self, form: str, secret: str) -> None:
        if self._forms.setdefault(form, secret) is not secret:
            return
        offsets, entries = _tail(len(form))
        new = dict(zip([form[offset : offset + _BLOCK] for offset in offsets], entries, strict=True))
        if len(new) == _BLOCK and self._blocks.keys().isdisjoint(new):
            self._blocks.update(new)
            return
        for offset, entry in zip(offsets, entries, strict=True):
            block = form[offset : offset + _BLOCK]
            known = self._blocks.setdefault(block, entry)
            if known is not entry and entry[0] not in known:
                self._blocks[block] = known + entry

    def kind(self, secret: str) -> str | None:
        """What a secret was when it was first seen."""
        return self._kinds.get(secret)

    def occurrences(self, text: str) -> Iterator[Span]:
        """The spans of known secrets in a text, in any spelling. They may overlap."""
        for at, places in self._blocks_in(text):
            for offset, length in places:
                start = at - offset
                if start >= 0 and (secret := self._forms.get(text[start : start + length])) is not None:
                    yield Span(start, start + length, self._kinds[secret], secret, Rank.KNOWN)

    def may_be_in(self, text: str) -> bool:
        """True if the text holds a block of a secret."""
        return any(True for _ in self._blocks_in(text))

    def _blocks_in(self, text: str) -> Iterator[tuple[int, tuple[tuple[int, int], ...]]]:
        """The blocks of a text that are blocks of spellings, each with its offsets in them."""
        blocks = self._blocks
        end = len(text) - _BLOCK + 1
        if end < _BLOCK or not blocks:
            return
        few = self._few
        if few and len(text) >= _BLOCK * len(few) and not present(text, few):
            return
        for at in range(0, end, _BLOCK):
            if (block := text[at : at + _BLOCK]) in blocks:
                yield at, blocks[block]

    def are_in(self, text: str, since: int = 0) -> bool:
        """True if the text holds secrets that were added after version `since`."""
        if since == self.version:
            return False
        added = self._added[since:]
        if len(added) <= _FEW:
            return bool(present(text, chain.from_iterable(added)))
        return any(True for _ in self.occurrences(text))
