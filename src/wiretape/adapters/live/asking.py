"""Calls a real model for one held call of a replay: sends the program's own request to its host."""

from __future__ import annotations

import time
from urllib.parse import urlsplit

from wiretape.adapters.live.tape import LiveTape
from wiretape.adapters.routing.dummy_keys import DUMMY_KEY
from wiretape.adapters.routing.hosts import is_loopback
from wiretape.errors import UsageError
from wiretape.matching.values import LiveRequest
from wiretape.model.framing import framer_for
from wiretape.model.http import BytesBody, Headers, Response, StreamBody

_TIMEOUT = 600  # seconds without a byte
_NOT_SENT = frozenset(
    {"host", "connection", "content-length", "transfer-encoding", "proxy-connection", "accept-encoding", "te"}
)
_UNDONE = ("content-encoding", "content-length", "transfer-encoding")


async def ask(request: LiveRequest, at: int, tape: LiveTape | None = None) -> Response:
    """Return the complete answer, and record it. `at`: the time of the request in the run. Raises UsageError."""
    import httpx

    host = urlsplit(request.url).hostname
    if host is None:
        raise UsageError(f"{request.url} names no host to call")
    if not is_loopback(host) and any(DUMMY_KEY in value for _, value in request.headers.pairs()):
        raise UsageError(f"the program has no API key for {host}: set it, and start the debugger again")
    headers = [(name, value) for name, value in request.headers.pairs() if name.lower() not in _NOT_SENT]
    began = time.monotonic()
    exchange = tape.begin(request) if tape is not None else None
    try:
        async with (
            httpx.AsyncClient(timeout=httpx.Timeout(_TIMEOUT, connect=30)) as client,
            client.stream(request.method, request.url, headers=headers, content=request.body) as response,
        ):
            after = round((time.monotonic() - began) * 1000)
            if exchange is not None:
                exchange.response(response.status_code, _kept(response.headers.multi_items()))
            pieces = []
            async for piece in response.aiter_bytes():
                pieces.append((round((time.monotonic() - began) * 1000) - after, piece))
                if exchange is not None:
                    exchange.received(piece)
        if exchange is not None and tape is not None:
            exchange.end()
            tape.kept += 1
    except BaseException as error:
        if exchange is not None:
            exchange.failed(error)
        if not isinstance(error, httpx.HTTPError):
            raise
        raise UsageError(f"{host} could not be called: {error or type(error).__name__}") from None
    kept = _kept(response.headers.multi_items())
    return Response(
        response.status_code, Headers(kept), at + after, body_of(response.headers.get("content-type"), pieces)
    )


def _kept(headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The headers of an answer whose body was decoded."""
    return [pair for pair in headers if pair[0].lower() not in _UNDONE]


def body_of(content_type: str | None, pieces: list[tuple[int, bytes]]) -> BytesBody | StreamBody:
    """A body from pieces with their times in milliseconds: a stream if the content type is one."""
    data = b"".join(piece for _, piece in pieces)
    framer = framer_for(content_type, data[:64])
    if framer is None:
        return BytesBody(data)
    frames: list[bytes] = []
    ms: list[int] = []
    for at, piece in pieces:
        found = framer.feed(piece)
        frames += found
        ms += [at] * len(found)
    rest = framer.close()
    last = pieces[-1][0] if pieces else 0
    binary = (content_type or "").startswith("application/vnd.amazon.eventstream")
    return StreamBody([*frames, *rest], [*ms, *[last] * len(rest)], binary)
