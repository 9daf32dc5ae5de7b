"""Redact output: messages, reports, and the commands in them.

Live requests, the environment and the command line hold secrets. Every text about them that a person may read goes
through an `OutputRedactor`. Matching, traffic and tapes are not affected.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeVar

from wiretape.model.http import Headers
from wiretape.model.jsonvalue import Json
from wiretape.model.jsonwalk import rebuilt
from wiretape.tape.recording.header_cache import clean_text
from wiretape.tape.redaction import PLACEHOLDER, Redactor, fixed_parts, is_placeholder

T = TypeVar("T", bound=Json)

_MOST_HEADERS = 512  # remembered header lines: a client sends mostly the same ones
_MOST_PARTS = 4096  # remembered parts of bodies: a loop sends its history again at every call
_OPTION = re.compile(r"-{0,2}[A-Za-z_][A-Za-z0-9_.-]*")  # before `=`: of an option, or of a variable
_CREDENTIAL = re.compile(r"(?:^|[_-])(?:key|token|secret|password|passwd|auth|credentials?|pat)$", re.IGNORECASE)
_HEADER_OPTIONS = ("-H", "--header", "--headers")


class OutputRedactor:
    """Replaces secrets in output. It learns the credentials of the environment and of every request that it is shown.

    One instance serves a whole session or command.
    """

    def __init__(self, patterns: Sequence[str] = (), environ: Mapping[str, str] | None = None) -> None:
        """`patterns`: the user's own, from the settings."""
        self._redactor = Redactor(patterns)
        self._headers: set[tuple[str, str]] = set()
        self._parts: dict[int, Json] = {}  # parts of bodies that were searched, kept so that their ids stay theirs
        self._secrets: dict[str, str] = {}  # a shown text, or a placeholder in it -> what it replaced
        for name, value in (environ or {}).items():
            if is_placeholder(self.argument(name, value)):
                self._redactor.learn_value(value, name.lower())

    # Learning

    def learn_request(self, headers: Headers, url: str) -> None:
        """Remember the credentials in a live request's headers and URL. Call it for every request: it is cheap."""
        new = [pair for pair in headers.pairs() if pair not in self._headers]
        if new or "?" in url or "@" in url:
            self._redactor.learn([(name, clean_text(value)) for name, value in new], clean_text(url))
        if len(self._headers) + len(new) > _MOST_HEADERS:
            self._headers.clear()
        self._headers.update(new)

    def learn_body(self, body: Json) -> None:
        """Remember the credentials in a live body. Parts that were searched before are not searched again."""
        if not isinstance(body, dict):
            self.value(body)
            return
        for name, value in body.items():
            for part in value if isinstance(value, list) else (value,):
                if not isinstance(part, dict | list):
                    self.member(name, part)
                elif self._parts.get(id(part)) is not part:
                    if len(self._parts) >= _MOST_PARTS:
                        self._parts.clear()
                    self._parts[id(part)] = part
                    self.member(name, part)

    def number_after(self, text: str) -> None:
        """Use higher numbers than the placeholders of a recorded text, which replace other secrets."""
        if "redacted" in text:
            self._redactor.resume(text)

    # Redacting

    def text(self, text: str) -> str:
        """A text without secrets."""
        return self._redactor.text(clean_text(text))

    def url(self, url: str) -> str:
        """A URL, or its path and query, without secrets."""
        return self._redactor.url(clean_text(url))

    def data(self, data: bytes) -> bytes:
        """Bytes without secrets."""
        return self._redactor.data(data)

    def headers(self, headers: Headers) -> Headers:
        """Headers without secrets: as a tape has them."""
        return Headers(self._redactor.headers(headers.pairs()))

    def value(self, value: T) -> T:
        """A JSON value without secrets."""
        try:
            made: T = self._redactor.value(value)
        except RecursionError:  # nested too deeply to recurse: redact each leaf, with its name
            made = rebuilt(value, lambda name, leaf: self.member(name or "", leaf))
        except UnicodeEncodeError:  # a body that is not text, or JSON with half a character
            made = self.value(rebuilt(value, lambda name, leaf: clean_text(leaf) if isinstance(leaf, str) else leaf))
        return made

    def member(self, name: str, value: Json) -> Json:
        """The value of a member, an option or a variable of this name, without secrets."""
        made = list(self.value({name: value}).values())
        return made[0]

    def argument(self, name: str, value: str) -> str:
        """The value of an option or of a variable of the environment, without secrets."""
        made = str(self.member(name.strip("-"), value))
        if made == value and _CREDENTIAL.search(name) and not value.startswith("/"):
            made = str(self.member("token", value))
        return self.url(value) if made == value else made

    def command(self, argv: Sequence[str]) -> list[str]:
        """A command line without secrets: values of credential options, in URLs, and of known shapes."""
        made: list[str] = []
        option = ""
        for word in argv:
            made.append(self._argument(option, word))
            option = word if word.startswith("-") and "=" not in word else ""
        return made

    def _argument(self, option: str, word: str) -> str:
        name, equals, value = word.partition("=")
        if option in _HEADER_OPTIONS and ":" in word:
            name, _, value = word.partition(":")
            return f"{name}: {self.headers(Headers([(name, value.strip())]))[name]}"
        if option and not word.startswith("-"):
            return self.argument(option, word)
        if equals and _OPTION.fullmatch(name):
            return f"{name}={self.argument(name, value)}"
        return self.url(word)

    # What a person edits

    def shown(self, value: T) -> T:
        """A JSON value without secrets, which `restored` can put back."""
        made = self.value(value)
        self._note(value, made)
        return made

    def _note(self, value: Json, made: Json) -> None:
        left: list[tuple[Json, Json]] = [(value, made)]
        while left:
            one, other = left.pop()
            if one is other:
                continue
            if isinstance(one, dict) and isinstance(other, dict):
                left += zip(one.values(), other.values(), strict=False)
            elif isinstance(one, list) and isinstance(other, list):
                left += zip(one, other, strict=False)
            elif isinstance(one, str) and isinstance(other, str):
                self._secrets.update({**_replaced(one, other), other: one})

    def restored(self, value: Json) -> Json:
        """A value that a person edited, with the secrets in the places of their placeholders."""

        def leaf(name: str | None, text: Json) -> Json:
            if not isinstance(text, str) or "redacted" not in text:
                return text
            whole = self._secrets.get(text)
            return whole or PLACEHOLDER.sub(lambda found: self._secrets.get(found[0], found[0]), text)

        return rebuilt(value, leaf)


def _replaced(text: str, made: str) -> dict[str, str]:
    """The placeholders of a redacted text, each with what it replaced."""
    placeholders = [found[0] for found in PLACEHOLDER.finditer(made)]
    first, *rest = fixed_parts(made)
    at, secrets = len(first), {}
    for number, (placeholder, part) in enumerate(zip(placeholders, rest, strict=True), 1):
        end = text.find(part, at) if number < len(rest) or part else len(text)
        if number == len(rest) and part:
            end = len(text) - len(part)
        if end < at:
            break
        secrets[placeholder] = text[at:end]
        at = end + len(part)
    return secrets
