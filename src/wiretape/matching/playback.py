"""Turn an outcome into what is sent: status, headers, body chunks with their pauses, and the ending."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Final

import orjson

from wiretape.matching.faults.apply import FOREVER_MS, apply_faults, paced, slowed
from wiretape.matching.values import Answer, Injected, Miss, Outcome, Stray
from wiretape.model.header_links import LINK_HEADERS
from wiretape.model.http import BytesBody, Ended, Exchange, Headers, StreamBody, body_bytes
from wiretape.tape.format.codings import kept_encoded
from wiretape.tape.redaction import PLACEHOLDER

# Headers of the recorded connection, and headers that described the recorded encoding.
_NOT_SENT: Final = frozenset(
    {
        "connection",
        "content-encoding",
        "content-length",
        "keep-alive",
        "proxy-authenticate",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes to send as one chunk, after a pause in milliseconds."""

    pause: float
    data: bytes


@dataclass(frozen=True, slots=True)
class Playback:
    """What a server or patch sends. `status` None: there was no response, and the connection is closed.

    `pieces`: separate chunks if `streamed`, else one body with a content-length. `cut`: the connection is then closed
    without a proper end; by a TCP reset if `reset`. `linger`: the client gets time to close first. `ended`: the end of
    the recorded exchange; in-process patches raise the exception of their library for it.
    """

    status: int | None
    headers: Sequence[tuple[str, str]]
    pieces: Sequence[Chunk]
    pause: float = 0  # before the headers, in milliseconds
    streamed: bool = False
    cut: bool = False
    reset: bool = False
    linger: bool = False
    ended: Ended = Ended.COMPLETE


def playback(outcome: Outcome, pace: float = 0) -> Playback:
    """The playback of an outcome. `pace`: 0 without pauses, 1 as recorded, 2 twice as slow."""
    match outcome:
        case Answer(exchange=exchange, faults=faults):
            return (
                apply_faults(_recorded(exchange, slowed(pace, faults)), faults) if faults else _recorded(exchange, pace)
            )
        case Injected(exchange=exchange, fault=fault):
            return apply_faults(_recorded(exchange, pace), [fault])
        case Miss(status=status, headers=headers, body=body):
            return _whole(status, headers.pairs(), body)
        case Stray(what=what, note=note):
            message = f"wiretape replay: {what} is not on the tape{f' ({note})' if note else ''}"
            return refused(404, message, "not_found_error", "not_recorded")


def refused(status: int, message: str, kind: str = "permission_error", code: str = "wiretape_refused") -> Playback:
    """An error response of wiretape, in the shape that most SDKs print."""
    body = orjson.dumps({"error": {"message": message, "type": kind, "code": code}})
    return _whole(status, [("content-type", "application/json"), ("x-should-retry", "false")], body)


def timed_out(shown: Playback) -> Playback:
    """An endless stall in process: the client's timeout, without waiting for it."""
    pieces = [piece for piece in shown.pieces if piece.data]
    if shown.pause >= FOREVER_MS:
        return Playback(None, (), (), cut=True, ended=Ended.TIMEOUT)
    return replace(shown, pieces=pieces, ended=Ended.TIMEOUT)


def lost_body(exchange: Exchange) -> int:
    """The length of a body that a complete recorded answer has lost; else 0. Such an answer is never played."""
    response = exchange.response
    if response is None or response.body is not None or exchange.ended is not Ended.COMPLETE:
        return 0
    if exchange.request.method == "HEAD" or response.status in (204, 304) or response.status < 200:
        return 0
    length = response.headers.get("content-length", "0")
    return int(length) if length.isdecimal() else 0


def _whole(status: int, headers: Sequence[tuple[str, str]], body: bytes) -> Playback:
    kept = [(name, value) for name, value in headers if name not in _NOT_SENT]
    return Playback(status, [*kept, ("content-length", str(len(body)))], [Chunk(0, body)])


def _recorded(exchange: Exchange, pace: float) -> Playback:
    response = exchange.response
    cut = exchange.ended is not Ended.COMPLETE
    linger = exchange.ended is Ended.CLIENT_CLOSED
    if response is None:
        gone = exchange.ended_at if exchange.ended_at is not None else exchange.at
        ended = exchange.ended or Ended.RECORDER_STOPPED
        return Playback(None, (), (), paced(gone - exchange.at, pace), cut=True, linger=linger, ended=ended)
    ended = exchange.ended or Ended.RECORDER_STOPPED
    pause = paced(response.headers_at - exchange.at, pace)
    headers, encoding = _headers(response.headers)
    body = response.body
    if encoding and isinstance(body, BytesBody) and kept_encoded(encoding, body.data):
        headers = (*headers, ("content-encoding", encoding))  # the recorder could not decode it
    if isinstance(body, StreamBody):
        pieces = list(_pieces(body, pace))
        return Playback(response.status, headers, pieces, pause, streamed=True, cut=cut, linger=linger, ended=ended)
    data = body_bytes(body)
    if cut:
        pieces = [Chunk(0, data)]
        return Playback(response.status, headers, pieces, pause, streamed=True, cut=True, linger=linger, ended=ended)
    if not _may_have_body(exchange.request.method, response.status):
        length = response.headers.get("content-length")
        kept = [("content-length", length)] if length and response.status >= 200 and response.status != 204 else []
        return Playback(response.status, [*headers, *kept], (), pause)
    return Playback(response.status, [*headers, ("content-length", str(len(data)))], [Chunk(0, data)], pause)


def _may_have_body(method: str, status: int) -> bool:
    return method != "HEAD" and status >= 200 and status not in (204, 304)


@lru_cache(256)  # many answers have the same headers
def _headers(headers: Headers) -> tuple[tuple[tuple[str, str], ...], str]:
    """The headers to send, and the content-encoding. Links with a placeholder stay: they match their requests."""
    kept = tuple(
        (name, value)
        for name, value in headers.pairs()
        if name not in _NOT_SENT
        and not name.startswith(":")
        and (name in LINK_HEADERS or not PLACEHOLDER.search(value))
    )
    return kept, ",".join(headers.all("content-encoding"))


def _pieces(body: StreamBody, pace: float) -> Iterator[Chunk]:
    frames = iter(body.frames)
    if not pace or not body.ms:
        yield from (Chunk(0, frame) for frame in frames)
        return
    pauses = [body.ms[0], *(after - before for before, after in pairwise(body.ms))]
    yield from (Chunk(paced(pause, pace), frame) for pause, frame in zip(pauses, frames, strict=False))
    yield from (Chunk(0, frame) for frame in frames)
