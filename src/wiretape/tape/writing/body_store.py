"""The one place where bodies get their shape, share with earlier ones, and lose their secrets.

A `BodyStore` holds the bodies that a tape has already and a new one may build on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import orjson

from wiretape.model.http import Body, BytesBody, JsonBody, StreamBody, TextBody, body_bytes
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.tape.format import patch
from wiretape.tape.format.bodies import digest, spelled, text_body
from wiretape.tape.format.document_text import document_shape
from wiretape.tape.format.incremental_parser import BodyParser
from wiretape.tape.format.json_layout import NotCarried
from wiretape.tape.format.json_offsets import Parsed

_WORTH_SHARING = 256  # bytes: a smaller body is written whole, which is easier to read
TOO_DEEP = (orjson.JSONEncodeError, RecursionError)  # orjson reads deeper nesting than it writes


class Redacts(Protocol):
    """What a writer needs of a Redactor."""

    def headers(self, pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]: ...
    def url(self, url: str) -> str: ...
    def text(self, text: str) -> str: ...
    def data(self, data: bytes) -> bytes: ...
    def value(self, value: Json) -> Json: ...
    def frames(self, frames: Any) -> tuple[Any, tuple[int, ...]]: ...


@dataclass(frozen=True, slots=True)
class _Written:
    """A body on the tape: the name by which others build on it, and its value without secrets."""

    name: str
    digest: str
    value: Json


class BodyStore:
    """The recent bodies that a new one may build on. Compared with their secrets, written without."""

    def __init__(self, redactor: Redacts | None) -> None:
        self._redactor = redactor
        self._parser = BodyParser()
        self._written: WeakKeyDictionary[Parsed, _Written] = WeakKeyDictionary()
        self._placed: tuple[Parsed, _Written] | None = None

    def keep(self) -> None:
        """The body that was placed last is on the tape: others may build on it from now on, and not before."""
        if self._placed is not None:
            parsed, written = self._placed
            self._written[parsed] = written
            self._placed = None

    def forget(self) -> None:
        """The body that was placed last did not get onto the tape."""
        self._placed = None

    def place(self, name: str, raw: bytes, known: JsonBody | None = None) -> tuple[JsonObject, Body] | None:
        """The shape of a body and the body that a reader will get; None for an empty one.

        `known` says how the body was spelled, where `raw` is only one way to spell it.
        """
        self._placed = None
        if not raw:
            return None
        parsed = self._parsed(raw)
        try:
            placed = parsed and self._place(name, raw, parsed, known)
        except TOO_DEEP:
            placed = None
        return placed or shaped(redacted(text_body(raw), self._redactor))

    def _place(self, name: str, raw: bytes, parsed: Parsed, known: JsonBody | None) -> tuple[JsonObject, Body]:
        how = known or JsonBody(None, parsed.layout, parsed.ascii, parsed.exact)
        base = self._written.get(parsed.base) if parsed.base else None
        shape, value = self._changed(parsed, base, len(raw)) if base else self._whole(parsed)
        shape |= spelled(how)
        self._placed = (parsed, _Written(name, digest(shape), value))
        return shape, replace(how, value=value)

    def _parsed(self, raw: bytes) -> Parsed | None:
        if raw.lstrip()[:1] not in (b"{", b"["):
            return None
        try:
            return self._parser.parse(raw)
        except NotCarried:
            return None

    def _whole(self, parsed: Parsed) -> tuple[JsonObject, Json]:
        value = self._redactor.value(parsed.value) if self._redactor else parsed.value
        return {"json": value}, value

    def _changed(self, parsed: Parsed, base: _Written, size: int) -> tuple[JsonObject, Json]:
        assert parsed.base is not None
        changes, keys = patch.diff(parsed.base.value, parsed.value)
        if size < _WORTH_SHARING or len(orjson.dumps(changes)) * 4 > size * 3:
            return self._whole(parsed)
        clean = self._redactor.value(changes) if self._redactor else changes
        untouched = clean is changes and base.value is parsed.base.value
        value = parsed.value if untouched else patch.apply(base.value, clean, keys)
        shape: JsonObject = {"like": base.name, "base": base.digest, "patch": clean}
        if keys is not None:
            shape["keys"] = keys
        return shape, value


def shaped(body: Body) -> tuple[JsonObject, Body]:
    """A body that builds on no other, with its shape."""
    return document_shape(body), body


def redacted(body: Body, redactor: Redacts | None) -> Body:
    """The body without secrets; the same object if it has none."""
    if redactor is None:
        return body
    try:
        return _redacted(body, redactor)
    except TOO_DEEP:
        return _redacted(text_body(body_bytes(body)), redactor)


def _redacted(body: Body, redactor: Redacts) -> Body:
    match body:
        case JsonBody():
            value = redactor.value(body.value)
            return body if value is body.value else replace(body, value=value)
        case TextBody():
            text = redactor.text(body.text)
            return body if text is body.text else TextBody(text)
        case StreamBody():
            frames, rewritten = redactor.frames(body.frames)
            if not rewritten:
                return body
            return replace(body, frames=tuple(frames), rewritten=tuple(sorted({*body.rewritten, *rewritten})))
        case BytesBody():
            data = redactor.data(body.data)
            return body if data is body.data else BytesBody(data)
