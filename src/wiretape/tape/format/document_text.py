"""The text of a document in a tape: pretty-printed JSON, with large bytes inserted in parts."""

from __future__ import annotations

from binascii import b2a_base64
from io import BytesIO
from secrets import token_hex

import orjson

from wiretape.model.http import Body, BytesBody, Headers
from wiretape.model.jsonvalue import JsonObject
from wiretape.tape.format.bodies import shape_of
from wiretape.tape.format.documents import Header

_LAYOUT = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
_LARGE = 3 * 1024 * 1024  # bytes from which on base64 is put into the document part by part; a multiple of 3


class _Later:
    """Bytes that are encoded as base64 only when the document is written: both are large."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.mark = token_hex(16)  # stands for it meanwhile


def document_text(document: JsonObject) -> bytes:
    """The text of a document in a tape, without the blank line."""
    later: list[_Later] = []

    def mark(value: object) -> str:
        if not isinstance(value, _Later):
            raise TypeError(f"{type(value).__name__} is no JSON")
        later.append(value)
        return value.mark

    text = orjson.dumps(document, default=mark, option=_LAYOUT)
    return _filled(text, later[0]) if later else text


def _filled(text: bytes, later: _Later) -> bytes:
    """The document with the base64 in its place."""
    before, _, after = text.partition(later.mark.encode())
    made = BytesIO()
    made.write(before)
    for at in range(0, len(later.data), _LARGE):
        made.write(b2a_base64(memoryview(later.data)[at : at + _LARGE], newline=False))
    made.write(after)
    return made.getvalue()


def document_shape(body: Body) -> JsonObject:
    """The BODY of a document that is about to be written."""
    return {"base64": _Later(body.data)} if isinstance(body, BytesBody) and len(body.data) > _LARGE else shape_of(body)


def header_document(header: Header) -> JsonObject:
    """A header as JSON, without what it does not say."""
    document: JsonObject = header.model_dump(mode="json", exclude_none=True)
    return document


def header_values(headers: Headers) -> JsonObject:
    return {name: values[0] if len(values := headers.all(name)) == 1 else list(values) for name in headers}
