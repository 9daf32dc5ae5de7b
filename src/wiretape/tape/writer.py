"""Exchanges -> documents: the one place where bodies get their shape, share with earlier ones, and lose their secrets.

`TapeWriter` makes documents and hands each to a sink, the text of one document a call; what the sink does with it
(a file, a list) is not its business. `write_tape` writes a whole tape.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from secrets import token_hex
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import orjson

from wiretape.errors import TapeUnwritable
from wiretape.model.http import (
    Body,
    BytesBody,
    Close,
    Ended,
    Exchange,
    Headers,
    JsonBody,
    Request,
    Response,
    Sender,
    StreamBody,
    TextBody,
    WsMessage,
    body_bytes,
)
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.tape import patch
from wiretape.tape.bodies import digest, plain_body, shape_of, spelled, text_body
from wiretape.tape.documents import Header
from wiretape.tape.sharing import BodyParser, Parsed
from wiretape.tape.spelling import NotCarried
from wiretape.tape.storage import TapeFile

_WORTH_SHARING = 256  # bytes: a smaller body is written whole, for whoever reads the tape
_TOO_DEEP = (orjson.JSONEncodeError, RecursionError)  # orjson reads deeper nesting than it writes


class Redacts(Protocol):
    """What a writer needs of a Redactor."""

    def headers(self, pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]: ...
    def url(self, url: str) -> str: ...
    def text(self, text: str) -> str: ...
    def data(self, data: bytes) -> bytes: ...
    def value(self, value: Json) -> Json: ...
    def frames(self, frames: Any) -> tuple[Any, tuple[int, ...]]: ...


_LAYOUT = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
_LARGE = 3 * 1024 * 1024  # bytes from which on base64 is put into the document part by part; a multiple of 3


class _Later:
    """Bytes whose base64 is not kept beside the document that it stands in: both are large."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.mark = token_hex(16)  # stands for it meanwhile


def document_text(document: JsonObject) -> bytes:
    """A document as it stands in a tape, without the blank line."""
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


def _shape(body: Body) -> JsonObject:
    """The BODY of a document that is about to be written."""
    return {"base64": _Later(body.data)} if isinstance(body, BytesBody) and len(body.data) > _LARGE else shape_of(body)


def header_document(header: Header) -> JsonObject:
    """A header as JSON, without what it does not say."""
    document: JsonObject = header.model_dump(mode="json", exclude_none=True)
    return document


def header_values(headers: Headers) -> JsonObject:
    return {name: values[0] if len(values := headers.all(name)) == 1 else list(values) for name in headers}


# -- bodies that share -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Written:
    """A body on the tape: the name by which others build on it, and its value without secrets."""

    name: str
    digest: str
    value: Json


class Shelf:
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
        except _TOO_DEEP:
            placed = None
        return placed or _shaped(redacted(text_body(raw), self._redactor))

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


def _shaped(body: Body) -> tuple[JsonObject, Body]:
    return _shape(body), body


def redacted(body: Body, redactor: Redacts | None) -> Body:
    """The body without secrets; the very same object if there were none."""
    if redactor is None:
        return body
    try:
        return _redacted(body, redactor)
    except _TOO_DEEP:
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


# -- documents ---------------------------------------------------------------------------------------------------


class TapeWriter:
    """Makes the documents of exchanges, in the order of happening. Each method returns what a reader will get."""

    def __init__(
        self, sink: Callable[[bytes], None], redactor: Redacts | None = None, heads_clean: bool = False
    ) -> None:
        """`heads_clean`: URLs and headers come without secrets already."""
        self._sink = sink
        self._heads_clean = heads_clean or redactor is None
        self._redactor = redactor
        self._shelf = Shelf(redactor)

    def _write(self, number: int, at: int, part: JsonObject) -> None:
        self._sink(document_text({"exchange": number, "at": at, **part}))

    def _write_placed(self, number: int, at: int, part: JsonObject) -> None:
        """Write a document whose body others may build on, once it is there."""
        try:
            self._write(number, at, part)
        except BaseException:
            self._shelf.forget()
            raise
        self._shelf.keep()

    def request(self, number: int, at: int, head: Request, raw: bytes) -> Request:
        """A request whose body is `raw`; the head's own body is not looked at."""
        try:
            return self._request(number, at, head, self._shelf.place(str(number), raw))
        except _TOO_DEEP:
            return self._request(number, at, head, _shaped(redacted(text_body(raw), self._redactor)))

    def _request(self, number: int, at: int, head: Request, placed: tuple[JsonObject, Body] | None) -> Request:
        if not self._heads_clean:
            head = replace(head, url=self._url(head.url), headers=self._headers(head.headers))
        part: JsonObject = {"method": head.method, "url": head.url}
        if head.http is not None:
            part["http"] = head.http
        part["headers"] = header_values(head.headers)
        if placed is not None:
            part["body"] = placed[0]
        self._write_placed(number, at, {"request": part})
        return replace(head, body=placed[1] if placed else None)

    def response(self, number: int, at: int, response: Response, ended: Ended | None) -> Response:
        """A response; `ended` is None for a WebSocket that goes on."""
        body = redacted(response.body, self._redactor) if response.body is not None else None
        trailers = None if response.trailers is None else self._headers(response.trailers)
        headers = self._headers(response.headers)
        response = Response(response.status, headers, response.headers_at, body, trailers)
        part: JsonObject = {
            "status": response.status,
            "headers": header_values(response.headers),
            "headers_at": response.headers_at,
        }
        if body is not None:
            part["body"] = _shape(body)
        if trailers is not None:
            part["trailers"] = header_values(trailers)
        document = {"response": part} | ({"ended": ended} if ended else {})
        try:
            self._write(number, at, document)
        except _TOO_DEEP:
            response = replace(response, body=text_body(body_bytes(body)))
            part["body"] = shape_of(text_body(body_bytes(body)))
            self._write(number, at, document)
        return response

    def message(self, number: int, ordinal: int, at: int, sender: Sender, data: bytes, text: bool) -> WsMessage:
        """A WebSocket message as it came."""
        name = f"{number}.{ordinal}"
        if not text:
            placed = _shaped(redacted(BytesBody(data), self._redactor))
        elif sender == "client":  # what clients send grows as requests do, and is shared as they are
            placed = self._shelf.place(name, data) or _shaped(TextBody(""))
        else:
            placed = _shaped(redacted(plain_body(data) or TextBody(""), self._redactor))
        try:
            return self._message(number, at, sender, placed)
        except _TOO_DEEP:
            return self._message(number, at, sender, _shaped(redacted(text_body(data), self._redactor)))

    def _message(self, number: int, at: int, sender: Sender, placed: tuple[JsonObject, Body]) -> WsMessage:
        self._write_placed(number, at, {"message": {"from": sender, "body": placed[0]}})
        return WsMessage(at, sender, placed[1])

    def _known_message(self, number: int, ordinal: int, message: WsMessage) -> WsMessage:
        placed = self._place(f"{number}.{ordinal}", message.body) if message.sender == "client" else None
        placed = placed or _shaped(redacted(message.body, self._redactor))
        return self._message(number, message.at, message.sender, placed)

    def ended(self, number: int, at: int, ended: Ended, close: Close | None = None) -> Close | None:
        """The end of an exchange without a response, or of a WebSocket."""
        part: JsonObject = {"ended": ended}
        if close is not None:
            close = replace(close, reason=self._redactor.text(close.reason) if self._redactor else close.reason)
            part["close"] = {"code": close.code, "reason": close.reason}
            if close.sender is not None:
                part["close"]["from"] = close.sender
        self._write(number, at, part)
        return close

    def incomplete(self, at: int, reason: str, exchanges: Iterable[int]) -> None:
        """The tape lacks something."""
        self._sink(document_text({"at": at, "incomplete": {"reason": reason, "exchanges": sorted(exchanges)}}))

    def exchange(self, exchange: Exchange) -> None:
        """All documents of an exchange that is known whole."""
        for _, write in self.steps(exchange):
            write()

    def steps(self, exchange: Exchange) -> list[tuple[int, Callable[[], object]]]:
        """The documents of an exchange: when each happened, and what writes it."""
        number, request, response = exchange.number, exchange.request, exchange.response
        end = exchange.ended_at if exchange.ended_at is not None else exchange.at
        websocket = response is not None and (bool(exchange.messages) or exchange.close is not None)
        steps: list[tuple[int, Callable[[], object]]] = [
            (
                exchange.at,
                lambda: self._request(number, exchange.at, request, self._place(str(number), request.body)),
            )
        ]
        if response is not None:
            at = response.headers_at if websocket else end
            ended = None if websocket else exchange.ended
            steps.append((at, lambda: self.response(number, at, response, ended)))
        for ordinal, message in enumerate(exchange.messages, 1):
            steps.append((message.at, lambda o=ordinal, m=message: self._known_message(number, o, m)))  # type: ignore[misc]
        if exchange.ended is not None and (response is None or websocket):
            over = exchange.ended
            steps.append((end, lambda: self.ended(number, end, over, exchange.close)))
        return steps

    def _place(self, name: str, body: Body | None) -> tuple[JsonObject, Body] | None:
        if body is None:
            return None
        if isinstance(body, JsonBody):
            return self._shelf.place(name, body_bytes(body), body)
        clean = redacted(body, self._redactor)
        return _shaped(clean)

    def _headers(self, headers: Headers) -> Headers:
        if self._heads_clean or self._redactor is None:
            return headers
        return Headers(self._redactor.headers(headers.pairs()))

    def _url(self, url: str) -> str:
        return self._redactor.url(url) if self._redactor else url


def write_tape(
    path: str | Path, header: Header, exchanges: Iterable[Exchange], redactor: Redacts | None = None
) -> None:
    """Write a whole tape, replacing the file if there is one. Documents stand in the order of happening.

    The file is replaced at once, at the end: whatever goes wrong, the old one stays.
    """
    path = Path(path)
    pieces: list[bytes] = []
    writer = TapeWriter(pieces.append, redactor)
    steps = [step for exchange in exchanges for step in writer.steps(exchange)]
    for _, write in sorted(steps, key=lambda step: step[0]):  # stable: an exchange's own documents stay in order
        write()
    replace_tape(path, [document_text(header_document(header)), *pieces])


def replace_tape(path: Path, documents: Iterable[bytes]) -> None:
    """Put a tape of these documents in the place of the file, all or nothing."""
    import contextlib
    import os

    fresh = path.with_name(f".{path.name}.{os.getpid()}.new{'.zst' if path.suffix == '.zst' else ''}")
    try:
        with closing(TapeFile(fresh)) as file:
            file.replace(b"\n".join(documents))
        os.replace(fresh, path)
    except TapeUnwritable as error:
        raise TapeUnwritable(str(error).replace(str(fresh), str(path))) from None
    except OSError as error:
        raise TapeUnwritable(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)


__all__ = ["Shelf", "TapeWriter", "document_text", "header_document", "replace_tape", "write_tape"]
