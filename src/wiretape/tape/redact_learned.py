"""Credential values that were seen, remembered so that they are found wherever else they occur, in any spelling."""

from __future__ import annotations

import base64
import json
import re
from collections import OrderedDict, deque
from threading import Lock
from typing import TypeAlias
from urllib.parse import quote, quote_plus

from wiretape.tape.redact_chunks import TOKEN

SHORTEST = 16  # shorter values are replaced where they stand as credentials, but not looked for elsewhere
_MOST = 128  # remembered at a time: a client has a few, a server that sets a new cookie each time must not slow us
_MOST_PASSING = 32
_MOST_FOUND = 64  # by their shape: any number may come in a text, and must not make credentials be forgotten
WIDE = "\0"  # stands between the characters of an ASCII text in UTF-16
_LEVELS = 3  # of JSON in strings of JSON

_DUMMY_WORDS = """
    sk pk ant proj api key apikey test tests testing dummy fake mock mocked example sample placeholder changeme change
    me my your here the a an no not none null nil empty unused ignored ignore needed required token secret password
    bearer local localhost lm studio ollama llama vllm anything any some value insert todo xxx redacted demo default
    user foo bar baz replace with this replay wiretape for openai anthropic google gemini deepseek mistral
    """
_DUMMIES = frozenset(_DUMMY_WORDS.split())
_PLAINLY = frozenset({"test", "dummy", "fake", "mock", "example", "placeholder", "unused"})
_RUNS = ("01234567890123456789", "abcdefghijklmnopqrstuvwxyz", "0123456789abcdef0123456789abcdef")
_IS_TOKEN = re.compile(f"[{re.escape(TOKEN.decode())}]*").fullmatch


def is_dummy(value: str) -> bool:
    """Whether a value is a well-known stand-in for a key: `sk-test-key`, `EMPTY`, `xxxxxxxx`, `sk-1234567890`."""
    tokens = [token for token in re.split(r"[^a-z0-9]+", value.lower()) if token]
    plainly = not _PLAINLY.isdisjoint(tokens)
    return all(_is_dummy_token(token) or (plainly and token.isalpha() and len(token) <= 10) for token in tokens)


def _is_dummy_token(token: str) -> bool:
    if len(set(token)) == 1 or any(token in run for run in _RUNS):
        return True
    return token.rstrip("0123456789") in _DUMMIES and len(token) - len(token.rstrip("0123456789")) <= 4


def spellings(secret: str, passing: bool = False) -> tuple[str, ...]:
    """The ways in which a secret may be written: itself, in a URL, in JSON (in JSON, in JSON), in base64, UTF-16.

    `passing` secrets come and go by the dozen: only the plain ways.
    """
    forms = {secret, quote(secret, safe=""), quote(secret), quote_plus(secret)}
    if passing:
        return tuple(sorted(forms, key=len, reverse=True))
    forms |= {re.sub("%..", lambda match: match[0].lower(), form) for form in forms if "%" in form}
    level = {secret}
    for _ in range(_LEVELS):
        level = {json.dumps(form, ensure_ascii=ascii_only)[1:-1] for form in level for ascii_only in (False, True)}
        forms |= level
    forms |= {"".join(f"%{byte:{digits}}" for byte in secret.encode()) for digits in ("02X", "02x")}
    forms.add(WIDE.join(secret))  # big- and little-endian: they differ in what stands at the ends
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


Form: TypeAlias = tuple[str, str, str]  # a spelling, the secret, its kind


class Learned:
    """The secrets seen so far. Adding one makes a new `forms`; readers in another thread keep the one they have."""

    def __init__(self) -> None:
        self._lock = Lock()  # the proxy's loop and the recorder's worker both learn
        self._kept: OrderedDict[str, list[Form]] = OrderedDict()
        self._passing: OrderedDict[str, list[Form]] = OrderedDict()
        self._found: OrderedDict[str, list[Form]] = OrderedDict()
        self._added: deque[tuple[int, list[bytes]]] = deque(maxlen=_MOST)
        self.forms: tuple[Form, ...] = ()  # longest first
        self.odd: tuple[bytes, ...] = ()  # spellings with other characters than tokens have
        self.version = 0

    def add(self, secret: str, kind: str, passing: bool = False, found: bool = False) -> bool:
        """Remember a secret; True if it is new.

        `passing`: a server made it up for this once, as cookies are. `found`: by its shape, in some text.
        """
        with self._lock:
            if secret in self._kept or (passing and secret in self._passing) or (found and secret in self._found):
                return False
            store, most = (self._passing, _MOST_PASSING) if passing else (self._kept, _MOST)
            if found:
                store, most = self._found, _MOST_FOUND
            store[secret] = [(form, secret, kind) for form in spellings(secret, passing)]
            if len(store) > most:
                store.popitem(last=False)
            if not passing:
                self._passing.pop(secret, None)
            self._added.append((self.version + 1, [form.encode() for form, _, _ in store[secret]]))
            self._rebuild()
            return True

    def _rebuild(self) -> None:
        stores = (self._passing, self._found, self._kept)
        forms = {form[0]: form for known in stores for forms in known.values() for form in forms}
        self.forms = tuple(sorted(forms.values(), key=lambda form: len(form[0]), reverse=True))
        self.odd = tuple(form.encode() for form in forms if not _IS_TOKEN(form))
        self.version += 1

    def in_since(self, data: bytes, version: int) -> bool:
        """Whether secrets that were added after a version stand in the data, or nobody can say any more."""
        if version == self.version:
            return False
        additions = tuple(self._added)
        if version + 1 < additions[0][0]:
            return True
        return any(form in data for added, forms in additions if added > version for form in forms)

    def kind(self, secret: str) -> str | None:
        """What a secret was when it was first seen."""
        forms = self._kept.get(secret) or self._found.get(secret) or self._passing.get(secret)
        return forms[0][2] if forms else None

    @property
    def longest(self) -> int:
        return max((len(form) for form, _, _ in self.forms), default=0)


def worth_learning(value: str) -> bool:
    return len(value) >= SHORTEST and not is_dummy(value) and "redacted" not in value
