"""Asks a real model for one call that a replay holds: the program's own request, sent where it was meant to go."""

from __future__ import annotations

import time
from urllib.parse import urlsplit

from wiretape.adapters.hosts import is_loopback
from wiretape.adapters.replaying import DUMMY_KEY
from wiretape.errors import UsageError
from wiretape.model.framing import framer_for
from wiretape.model.http import BytesBody, Headers, Response, StreamBody
from wiretape.replay.values import LiveRequest

_LONGEST = 600  # seconds without a byte: models think
_NOT_SENT = frozenset(
    {"host", "connection", "content-length", "transfer-encoding", "proxy-connection", "accept-encoding", "te"}
)
_UNDONE = ("content-encoding", "content-length", "transfer-encoding")


async def ask(request: LiveRequest, at: int) -> Response:
    """The whole answer. `at`: when the request was sent, in the run's own time. Raises UsageError."""
    import httpx

    host = urlsplit(request.url).hostname
    if host is None:
        raise UsageError(f"{request.url} names no host: it is not known which model to ask")
    if not is_loopback(host) and any(DUMMY_KEY in value for _, value in request.headers.pairs()):
        raise UsageError(f"the program has no API key for {host}: set it, and start the debugger again")
    headers = [(name, value) for name, value in request.headers.pairs() if name.lower() not in _NOT_SENT]
    began = time.monotonic()
    try:
        async with (
            httpx.AsyncClient(timeout=httpx.Timeout(_LONGEST, connect=30)) as client,
            client.stream(request.method, request.url, headers=headers, content=request.body) as response,
        ):
            after = round((time.monotonic() - began) * 1000)
            pieces = [(round((time.monotonic() - began) * 1000) - after, p) async for p in response.aiter_bytes()]
    except httpx.HTTPError as error:
        raise UsageError(f"{host} could not be asked: {error or type(error).__name__}") from None
    kept = Headers([pair for pair in response.headers.multi_items() if pair[0].lower() not in _UNDONE])
    return Response(response.status_code, kept, at + after, _body(response.headers.get("content-type"), pieces))


def _body(content_type: str | None, pieces: list[tuple[int, bytes]]) -> BytesBody | StreamBody:
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
