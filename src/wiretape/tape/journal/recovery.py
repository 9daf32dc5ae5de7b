"""What a journal left behind holds, as documents: for the reader to look at, for the next writer to fold in."""

from __future__ import annotations

from typing import TypeAlias

from wiretape.model.http import Body, BytesBody, Headers, Request, Response, WsMessage
from wiretape.tape.format.bodies import response_body
from wiretape.tape.journal.draft import Draft, MessageDraft
from wiretape.tape.journal.journal import Leftover, Source, decoded
from wiretape.tape.writing.writer import TapeWriter

# exchange -> whether the tape has its response and its end, and how many of its messages
Have: TypeAlias = dict[int, tuple[bool, bool, int]]


def request_head(draft: Draft) -> Request:
    return Request(draft.method, draft.url, Headers(draft.headers), None, draft.http)


def request_bytes(draft: Draft, journal: Source) -> bytes:
    return b"".join(data for _, data in decoded(draft.request, journal))


def response_of(draft: Draft, journal: Source) -> Response:
    """The part of the response that was received."""
    assert draft.status is not None
    headers = Headers(draft.response_headers)
    # A generator: a list would keep a large body in memory twice.
    chunks = ((max(0, at - draft.headers_at), data) for at, data in decoded(draft.response, journal))
    if draft.response.kept_encoded:
        body: Body | None = BytesBody(b"".join(data for _, data in chunks))
    else:
        body = response_body(chunks, headers.get("content-type"))
    return Response(draft.status, headers, draft.headers_at, body, draft.trailers)


def write_message(writer: TapeWriter, draft: Draft, message: MessageDraft, journal: Source) -> WsMessage:
    extent = message.extent
    return writer.message(draft.number, message.ordinal, extent[2], message.sender, journal.read(extent), message.text)


def recovered(left: Leftover, have: Have) -> list[bytes]:
    """The documents that the journal has and the tape has not; exchanges that are open stay open."""
    documents: list[bytes] = []
    writer = TapeWriter(documents.append)
    for number, draft in sorted(left.drafts.items()):
        _recover(writer, draft, left, have.get(number))
    return documents


def _recover(writer: TapeWriter, draft: Draft, journal: Source, have: tuple[bool, bool, int] | None) -> None:
    has_response, has_end, messages = have or (False, False, 0)
    if have is None:
        writer.request(draft.number, draft.at, request_head(draft), request_bytes(draft, journal))
    at = draft.ended_at if draft.ended_at is not None else draft.at
    if draft.status is not None and not has_response:
        ended = None if draft.websocket else draft.ended
        writer.response(draft.number, draft.headers_at if draft.websocket else at, response_of(draft, journal), ended)
        has_end = has_end or ended is not None
    for message in draft.messages:
        if message.ordinal > messages:
            write_message(writer, draft, message, journal)
    if draft.ended is not None and not has_end:
        writer.ended(draft.number, at, draft.ended, draft.close)
