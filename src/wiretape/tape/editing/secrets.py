"""Finds the places of secrets in exchanges that are already on a tape. Only the kind of a secret is returned."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from wiretape.model.http import Body, BytesBody, Exchange, Headers, JsonBody, StreamBody, TextBody
from wiretape.model.jsonvalue import Json
from wiretape.tape.editing.edit import learn_heads
from wiretape.tape.redaction import Redactor, worth_learning

_NO_SECRET = "header"  # a header that a recorder would have replaced; it may be harmless
_PARTS = re.compile(r"[\s;,=:]+")
_WORDS = re.compile(r"[A-Z]?[a-z]+(?:[-_.][A-Z]?[a-z]+)*")
_MOST = 20  # places reported for one exchange


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret's place, such as `request.body.messages[2].content`, and what kind it is."""

    exchange: int
    path: str
    kind: str


def secrets_in(exchanges: Sequence[Exchange], redactor: Redactor, words: bool = False) -> Iterator[Secret]:
    """Every place of a secret, exchange by exchange. Objects that exchanges share are searched once.

    `words`: also plain words in a credential's header, such as a test sends, and headers that a recorder does not keep.
    """
    learn_heads(exchanges, redactor)
    finder = _Finder(redactor, words)
    for exchange in exchanges:
        for number, (path, kind) in enumerate(finder.of(exchange)):
            if number < _MOST:
                yield Secret(exchange.number, path, kind)


Found = Iterator[tuple[str, str]]


class _Finder:
    def __init__(self, redactor: Redactor, words: bool) -> None:
        self._redactor = redactor
        self._words = words
        self._clean: dict[int, Json] = {}  # list elements without secrets, kept so that their ids stay theirs

    def of(self, exchange: Exchange) -> Found:
        yield from self._kinds("request.url", lambda: self._redactor.url(exchange.request.url))
        yield from self._headers("request.headers", exchange.request.headers)
        yield from self._body("request.body", exchange.request.body)
        if exchange.response is not None:
            yield from self._headers("response.headers", exchange.response.headers)
            yield from self._body("response.body", exchange.response.body)
        for number, message in enumerate(exchange.messages):
            yield from self._body(f"messages[{number}].body", message.body)

    def _kinds(self, path: str, redact: Callable[[], object]) -> Found:
        """The kinds that a redaction replaces."""
        before = self._redactor.counts
        redact()
        for kind, count in self._redactor.counts.items():
            if (self._words or kind != _NO_SECRET) and count > before.get(kind, 0):
                yield path, kind

    def _headers(self, path: str, headers: Headers) -> Found:
        for pair in headers.pairs():
            if not (self._words or _random_looking(pair[1])):
                continue  # a word in a credential's place, such as what a test sends
            yield from self._kinds(f"{path}.{pair[0]}", lambda pair=pair: self._redactor.headers([pair]))  # type: ignore[misc]

    def _body(self, path: str, body: Body | None) -> Found:
        match body:
            case JsonBody():
                yield from self._value(path, body.value)
            case StreamBody():
                yield from self._frames(path, body.frames)
            case TextBody():
                yield from self._kinds(path, lambda: self._redactor.text(body.text))
            case BytesBody():
                yield from self._kinds(path, lambda: self._redactor.data(body.data))
            case None:
                return

    def _frames(self, path: str, frames: Sequence[bytes]) -> Found:
        before = self._redactor.counts
        _, rewritten = self._redactor.frames(frames)
        if not rewritten:
            return
        for kind, count in self._redactor.counts.items():
            if kind != _NO_SECRET and count > before.get(kind, 0):
                yield f"{path}.events[{rewritten[0]}]", kind

    def _value(self, path: str, value: Json) -> Found:
        """The places of secrets in a value. List elements that many requests share are searched once."""
        if isinstance(value, dict) and not isinstance(value.get("type"), str):
            for name, member in value.items():
                if isinstance(member, list):
                    yield from self._elements(f"{path}.{name}", member)
                else:
                    yield from _below(path, self._redactor.places({name: member}))
        elif isinstance(value, list):
            yield from self._elements(path, value)
        else:
            yield from _below(path, self._redactor.places(value))

    def _elements(self, path: str, items: Sequence[Json]) -> Found:
        for index, item in enumerate(items):
            if id(item) in self._clean:  # asked first: a history is as long as all requests before it together
                continue
            if isinstance(item, dict | list) and self._redactor.value(item) is item:
                self._clean[id(item)] = item
                continue
            name = path.rpartition(".")[2]
            yield from _below(path.removesuffix(f".{name}"), self._redactor.places({name: [item]}), f"[{index}]")


def _below(path: str, places: Sequence[tuple[str, str]], index: str = "") -> Found:
    """Places with the path before them; `index` instead of that of a list with one element."""
    for place, kind in places:
        yield path + (place.replace("[0]", index, 1) if index else place), kind


def _random_looking(value: str) -> bool:
    """Whether a header's value may hold a real credential: one long part that is not made of plain words."""
    parts = _PARTS.split(value)
    return any(worth_learning(part) and not _WORDS.fullmatch(part) for part in parts)
