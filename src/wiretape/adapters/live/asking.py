"""Asks a real model for one call that a replay holds: the program's own request, sent where it was meant to go."""

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

_LONGEST = 600  # seconds without a byte: models think
_NOT_SENT = frozenset(
    {"host", "connection", "content-length", "transfer-encoding", "proxy-connection", "accept-encoding", "te"}
)
_UNDONE = ("content-encoding", "content-length", "transfer-encoding")


async def ask(request: LiveRequest, at: int, tape: LiveTape | None = None) -> Response:
    """The whole answer, kept on a tape. `at`: when the request was sent, in the run's own time. Raises UsageError."""
    import httpx

    host = urlsplit(request.url).hostname
    if host is None:
        raise UsageError(f"{request.url} names no host: it is not known which model to ask")
    if not is_loopback(host) and any(DUMMY_KEY in value for _, value in request.headers.pairs()):
        raise UsageError(f"the program has no API key for {host}: set it, and start the debugger again")
    headers = [(name, value) for name, value in request.headers.pairs() if name.lower() not in _NOT_SENT]
    began = time.monotonic()
    taken = tape.take(request) if tape is not None else None
    try:
        async with (
            httpx.AsyncClient(timeout=httpx.Timeout(_LONGEST, connect=30)) as client,
            client.stream(request.method, request.url, headers=headers, content=request.body) as response,
        ):
            after = round((time.monotonic() - began) * 1000)
            if taken is not None:
                taken.response(response.status_code, _kept(response.headers.multi_items()))
            pieces = []
            async for piece in response.aiter_bytes():
                pieces.append((round((time.monotonic() - began) * 1000) - after, piece))
                if taken is not None:
                    taken.received(piece)
        if taken is not None and tape is not None:
            taken.end()
            tape.kept += 1
    except BaseException as error:
        if taken is not None:
            taken.failed(error)
        if not isinstance(error, httpx.HTTPError):
            raise
        raise UsageError(f"{host} could not be asked: {error or type(error).__name__}") from None
    kept = _kept(response.headers.multi_items())
    return Response(
        response.status_code, Headers(kept), at + after, body_of(response.headers.get("content-type"), pieces)
    )


def _kept(headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The head of an answer whose body is read in no coding."""
    return [pair for pair in headers if pair[0].lower() not in _UNDONE]


def body_of(content_type: str | None, pieces: list[tuple[int, bytes]]) -> BytesBody | StreamBody:
    """A body that came in pieces, each with its time in milliseconds: a stream where it is one."""
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
