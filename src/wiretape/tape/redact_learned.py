"""Credential values that were seen, remembered so that they are found wherever else they occur, in any spelling."""

from __future__ import annotations

import base64
import json
import re
from collections import OrderedDict
from urllib.parse import quote, quote_plus

from wiretape.tape.redact_chunks import TOKEN

SHORTEST = 16  # shorter values are replaced where they stand as credentials, but not looked for elsewhere
_MOST = 128  # remembered at a time: a client has a few, a server that sets a new cookie each time must not slow us
_MOST_PASSING = 32
_LEVELS = 3  # of JSON in strings of JSON

_DUMMY_WORDS = """
    sk pk ant proj api key apikey test tests testing dummy fake mock mocked example sample placeholder changeme change
    me my your here the a an no not none null nil empty unused ignored ignore needed required token secret password
    bearer local localhost lm studio ollama llama vllm anything any some value insert todo xxx redacted demo default
    user foo bar baz replace with this replay wiretape for openai anthropic google gemini deepseek mistral
    """
_DUMMIES = frozenset(_DUMMY_WORDS.split())
_RUNS = ("01234567890123456789", "abcdefghijklmnopqrstuvwxyz", "0123456789abcdef0123456789abcdef")
_WORDS = re.compile(r"[a-z]+|[0-9]+")


def is_dummy(value: str) -> bool:
    """Whether a value is a well-known stand-in for a key: `sk-test-key`, `EMPTY`, `xxxxxxxx`, `sk-1234567890`."""
    folded = value.lower()
    tokens = [token for token in re.split(r"[^a-z0-9]+", folded) if token]
    return all(_is_dummy_token(token) for token in tokens)


def _is_dummy_token(token: str) -> bool:
    if token in _DUMMIES or len(set(token)) == 1 or any(token in run for run in _RUNS):
        return True
    return all(
        word in _DUMMIES or len(set(word)) == 1 or (word.isdigit() and (len(word) <= 4 or word in _RUNS[0]))
        for word in _WORDS.findall(token)
    )


def spellings(secret: str) -> tuple[str, ...]:
    """The ways in which a secret may be written: itself, in a URL, in JSON (inside JSON, inside JSON), in base64."""
    forms = {secret, quote(secret, safe=""), quote(secret), quote_plus(secret)}
    forms |= {re.sub("%..", lambda match: match[0].lower(), form) for form in forms if "%" in form}
    level = {secret}
    for _ in range(_LEVELS):
        level = {json.dumps(form, ensure_ascii=ascii_only)[1:-1] for form in level for ascii_only in (False, True)}
        forms |= level
    return tuple(sorted(forms.union(_base64_cores(secret.encode())), key=len, reverse=True))


def _base64_cores(data: bytes) -> list[str]:
    """The characters that stand for `data` in the base64 of any text that holds it, at each of the three offsets."""
    cores = []
    for offset in range(3):
        encoded = base64.b64encode(b"\0" * offset + data).decode()
        skip = (0, 2, 3)[offset]
        spare = (offset + len(data)) % 3
        whole = encoded.rstrip("=")
        core = whole[skip : len(whole) - 1 if spare else len(whole)]
        cores += [core, core.replace("+", "-").replace("/", "_")]
    return cores


class Learned:
    """The secrets seen so far. Adding one makes a new `forms`; readers in another thread keep the one they have."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, str] = OrderedDict()
        self._passing: OrderedDict[str, str] = OrderedDict()
        self.forms: tuple[tuple[str, str, str], ...] = ()  # (spelling, secret, kind), longest first
        self.odd: tuple[bytes, ...] = ()  # spellings with other characters than tokens have
        self.version = 0

    def add(self, secret: str, kind: str, passing: bool = False) -> bool:
        """Remember a secret; True if it is new. `passing`: a server made it up for this once, as cookies are."""
        if secret in self._kept:
            return False
        store, most = (self._passing, _MOST_PASSING) if passing else (self._kept, _MOST)
        if secret in store:
            return False
        store[secret] = kind
        if len(store) > most:
            store.popitem(last=False)
        if not passing:
            self._passing.pop(secret, None)
        self._rebuild()
        return True

    def _rebuild(self) -> None:
        forms = {
            form: (form, secret, kind)
            for known in (self._passing, self._kept)
            for secret, kind in known.items()
            for form in spellings(secret)
        }
        self.forms = tuple(sorted(forms.values(), key=lambda form: len(form[0]), reverse=True))
        self.odd = tuple(form.encode() for form in forms if form.encode().strip(TOKEN))
        self.version += 1

    def kind(self, secret: str) -> str | None:
        return self._kept.get(secret) or self._passing.get(secret)

    @property
    def longest(self) -> int:
        return max((len(form) for form, _, _ in self.forms), default=0)


def worth_learning(value: str) -> bool:
    return len(value) >= SHORTEST and not is_dummy(value) and "redacted" not in value
