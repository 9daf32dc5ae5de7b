"""Equality of JSON values: types are strict, but 1 = 1.0; the order of members and the spelling do not count.

Equal values get the same number, their *class*, so that a conversation becomes a short list of integers. Values are
remembered by identity: an unchanged message costs a dictionary lookup.
"""

from __future__ import annotations

import re
from hashlib import blake2b

import orjson

from wiretape.model.jsonvalue import Json
from wiretape.model.jsonwalk import rebuilt, spelled, strings
from wiretape.tape.redaction import PLACEHOLDER, matches

UNKNOWN = -1  # the class of a live value that equals no recorded one

_EXPONENT = re.compile(rb"e\+?\d\d")  # after a digit; an expression with a literal first is five times as fast
_BIGGEST = float(2**63)
_SHORT = 64  # characters
_TEXT = frozenset({str, bool, type(None)})


def canonical(value: Json) -> bytes:
    """Bytes that are equal exactly when two JSON values are."""
    try:
        raw = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        if not _is_text(value) and (b".0" in raw or (_EXPONENT.search(raw) and _has_exponents(raw))):
            raw = orjson.dumps(rebuilt(value, _whole), option=orjson.OPT_SORT_KEYS)
    except TypeError:  # a lone surrogate, an integer beyond 64 bits, or too many levels for orjson
        raw = "".join(spelled(rebuilt(value, _whole), ordered=True)).encode()
    return raw


def _is_text(value: Json) -> bool:
    """Whether the value is a flat object without numbers, such as a message, and so has one spelling only."""
    return isinstance(value, dict) and _TEXT.issuperset(map(type, value.values()))


def _has_exponents(raw: bytes) -> bool:
    return any(raw[found.start() - 1 : found.start()].isdigit() for found in _EXPONENT.finditer(raw))


def _whole(name: str | None, value: Json) -> Json:
    """An integer for a float without a fraction; other values unchanged."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < _BIGGEST else value


def same(recorded: Json, live: Json) -> bool:
    """Whether two JSON values are equal. A placeholder in the recorded one matches anything."""
    pairs = [(recorded, live)]
    while pairs:
        one, other = pairs.pop()
        match one:
            case dict():
                if not isinstance(other, dict) or one.keys() != other.keys():
                    return False
                pairs.extend((item, other[key]) for key, item in one.items())
            case list():
                if not isinstance(other, list) or len(one) != len(other):
                    return False
                pairs.extend(zip(one, other, strict=True))
            case _ if not _same_leaf(one, other):
                return False
    return True


def _same_leaf(recorded: Json, live: Json) -> bool:
    match recorded:
        case str():
            return isinstance(live, str) and (recorded == live or matches(recorded, live))
        case bool() | None:
            return recorded is live
    return isinstance(live, int | float) and not isinstance(live, bool) and bool(recorded == live)


def has_placeholder(value: Json) -> bool:
    """Whether a recorded value has a placeholder, and so matches different live values."""
    return any(PLACEHOLDER.search(text) for text in strings(value))


_TOKEN = re.compile(PLACEHOLDER.pattern.encode())


def _tokens(raw: bytes) -> tuple[bytes, bool]:
    """The bytes with all placeholders replaced by one, and whether there are any."""
    if b"redacted" not in raw:
        return raw, False
    made, count = _TOKEN.subn(b"[redacted]", raw)
    return made, count > 0


class EqualityClasses:
    """Gives equal values the same number. Recorded values are learned, live values are looked up."""

    __slots__ = ("_by_digest", "_memo", "_strings", "_wild")

    def __init__(self) -> None:
        self._by_digest: dict[bytes, int] = {}
        self._wild: list[tuple[Json, int]] = []  # recorded values with placeholders
        self._memo: dict[int, tuple[Json, int]] = {}
        self._strings: dict[str, int] = {}  # short recorded strings, such as a model or a query

    def learn(self, value: Json, keep: bool = True) -> int:
        """The class of a recorded value. `keep`: remember it by identity, because it recurs."""
        known = self._memo.get(id(value))
        if known is not None and known[0] is value:
            return known[1]
        raw, wild = _tokens(canonical(value))
        digest = blake2b(raw, digest_size=16).digest()
        found = self._by_digest.get(digest)
        if found is None:
            found = self._by_digest[digest] = len(self._by_digest)
            if wild:
                self._wild.append((value, found))
        if isinstance(value, str) and len(value) < _SHORT:
            self._strings[value] = found
        return self._remember(value, found) if keep else found

    def find(self, value: Json, keep: bool = True) -> int:
        """The class of a live value, or UNKNOWN."""
        if isinstance(value, str):
            short = self._strings.get(value)
            if short is not None:
                return short
        else:
            known = self._memo.get(id(value))
            if known is not None and known[0] is value:
                return known[1]
        raw, _ = _tokens(canonical(value))
        found = self._by_digest.get(blake2b(raw, digest_size=16).digest())
        if found is None:
            found = next((number for recorded, number in self._wild if same(recorded, value)), UNKNOWN)
        return self._remember(value, found) if keep else found

    def _remember(self, value: Json, number: int) -> int:
        if isinstance(value, dict | list):  # equal small values may be one object
            self._memo[id(value)] = (value, number)
        return number
