"""Exchanges -> documents, whose bodies share with earlier ones and have lost their secrets.

`TapeWriter` makes documents and hands each to a sink, the text of one document a call; what the sink does with it
(a file, a list) is not its business. `write_tape` writes a whole tape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

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
    TextBody,
    WsMessage,
    body_bytes,
)
from wiretape.model.jsonvalue import JsonObject
from wiretape.tape.atomic import rewrite
from wiretape.tape.format.bodies import plain_body, shape_of, text_body
from wiretape.tape.format.document_text import document_shape, document_text, header_document, header_values
from wiretape.tape.format.documents import Header
from wiretape.tape.storage import stored
from wiretape.tape.writing.body_store import TOO_DEEP, BodyStore, Redacts, redacted, shaped


class TapeWriter:
    """Makes the documents of exchanges, in the order of happening. Each method returns what a reader will get."""

    def __init__(
        self, sink: Callable[[bytes], None], redactor: Redacts | None = None, heads_clean: bool = False
    ) -> None:
        """`heads_clean`: URLs and headers come without secrets already."""
        self._sink = sink
        self._heads_clean = heads_clean or redactor is None
        self._redactor = redactor
        self._shelf = BodyStore(redactor)

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
        except TOO_DEEP:
            return self._request(number, at, head, shaped(redacted(text_body(raw), self._redactor)))

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
        """A response; `ended` is None for an open WebSocket."""
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
            part["body"] = document_shape(body)
        if trailers is not None:
            part["trailers"] = header_values(trailers)
        document = {"response": part} | ({"ended": ended} if ended else {})
        try:
            self._write(number, at, document)
        except TOO_DEEP:
            response = replace(response, body=text_body(body_bytes(body)))
            part["body"] = shape_of(text_body(body_bytes(body)))
            self._write(number, at, document)
        return response

    def message(self, number: int, ordinal: int, at: int, sender: Sender, data: bytes, text: bool) -> WsMessage:
        """A WebSocket message from its raw bytes."""
        name = f"{number}.{ordinal}"
        if not text:
            placed = shaped(redacted(BytesBody(data), self._redactor))
        elif sender == "client":  # what clients send grows as requests do, and is shared as they are
            placed = self._shelf.place(name, data) or shaped(TextBody(""))
        else:
            placed = shaped(redacted(plain_body(data) or TextBody(""), self._redactor))
        try:
            return self._message(number, at, sender, placed)
        except TOO_DEEP:
            return self._message(number, at, sender, shaped(redacted(text_body(data), self._redactor)))

    def _message(self, number: int, at: int, sender: Sender, placed: tuple[JsonObject, Body]) -> WsMessage:
        self._write_placed(number, at, {"message": {"from": sender, "body": placed[0]}})
        return WsMessage(at, sender, placed[1])

    def _known_message(self, number: int, ordinal: int, message: WsMessage) -> WsMessage:
        placed = self._place(f"{number}.{ordinal}", message.body) if message.sender == "client" else None
        placed = placed or shaped(redacted(message.body, self._redactor))
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
        return shaped(clean)

    def _headers(self, headers: Headers) -> Headers:
        if self._heads_clean or self._redactor is None:
            return headers
        return Headers(self._redactor.headers(headers.pairs()))

    def _url(self, url: str) -> str:
        return self._redactor.url(url) if self._redactor else url


def write_tape(
    path: str | Path, header: Header, exchanges: Iterable[Exchange], redactor: Redacts | None = None
) -> None:
    """Write a whole tape, replacing the file if there is one. Documents are in order of time.

    The file is replaced in one step at the end. If anything fails, the old file stays.
    """
    path = Path(path)
    pieces: list[bytes] = []
    writer = TapeWriter(pieces.append, redactor)
    steps = [step for exchange in exchanges for step in writer.steps(exchange)]
    for _, write in sorted(steps, key=lambda step: step[0]):  # stable: an exchange's own documents stay in order
        write()
    replace_tape(path, [document_text(header_document(header)), *pieces])


def replace_tape(path: Path, documents: Iterable[bytes]) -> None:
    """Replace the file with a tape of these documents, or leave it unchanged."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        rewrite(path, stored(path, [b"\n".join(documents)]))
    except OSError as error:
        raise TapeUnwritable(f"{path}: cannot be written: {error.strerror or error}") from None


__all__ = ["TapeWriter", "document_text", "header_document", "replace_tape", "write_tape"]
