"""Converts live requests and answers to exchanges for the debugger; reads the timeouts of clients."""

from __future__ import annotations

import time
from dataclasses import replace

from wiretape.compare.difference import Difference
from wiretape.matching.live import plain_bytes
from wiretape.matching.values import Answer, Injected, LiveRequest, Miss, Outcome
from wiretape.model.framing import framer_for
from wiretape.model.http import BytesBody, Ended, Exchange, Headers, JsonBody, Request, Response, StreamBody, TextBody
from wiretape.tape.format.incremental_parser import BodyParser
from wiretape.tape.format.json_layout import NotCarried
from wiretape.tape.output_redactor import OutputRedactor

# Headers in which SDKs send their timeout in seconds.
_TIMEOUTS = ("x-stainless-timeout", "x-server-timeout")


class LiveExchanges:
    """Creates exchanges without secrets. Times count from its creation; requests share repeated messages."""

    def __init__(self, output: OutputRedactor) -> None:
        self._output = output
        self._parser = BodyParser()
        self._since = time.monotonic()

    @property
    def now(self) -> int:
        return round((time.monotonic() - self._since) * 1000)

    def opened(self, number: int, request: LiveRequest) -> Exchange:
        """An exchange without a response."""
        self._output.learn_request(request.headers, request.url)
        data = plain_bytes(request.body, request.headers.get("content-encoding", ""))
        try:
            body: JsonBody | BytesBody | None = (
                JsonBody(self._output.shown(self._parser.parse(data).value)) if data else None
            )
        except NotCarried:
            body = BytesBody(self._output.data(data))
        url, headers = self._output.url(request.url), self._output.headers(request.headers)
        return Exchange(number, self.now, Request(request.method, url, headers, body))

    def message(self, data: str | bytes) -> TextBody | BytesBody:
        """The body of a WebSocket message."""
        if isinstance(data, bytes):
            return BytesBody(self._output.data(data))
        return TextBody(self._output.data(data.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass"))


def answered(opened: Exchange, outcome: Outcome, at: int) -> Exchange:
    """The exchange with the outcome of a replay, whose stream arrives without pauses."""
    match outcome:
        case Answer(exchange=recorded) | Injected(exchange=recorded):
            response = recorded.response
            if response is not None:
                body = response.body
                if isinstance(body, StreamBody):
                    body = replace(body, ms=[0] * len(body.ms))
                response = replace(response, headers_at=at, body=body)
            return replace(opened, response=response, ended=recorded.ended, ended_at=at)
        case Miss(status=status, headers=headers, body=body):
            response = Response(status, headers, at, BytesBody(body))
            return replace(opened, response=response, ended=Ended.COMPLETE, ended_at=at)
    return opened


def later(exchange: Exchange, ms: int) -> Exchange:
    """The exchange with its times moved."""
    response, ended_at = exchange.response, exchange.ended_at
    return replace(
        exchange,
        at=exchange.at + ms,
        response=None if response is None else replace(response, headers_at=response.headers_at + ms),
        ended_at=None if ended_at is None else ended_at + ms,
        messages=tuple(replace(message, at=message.at + ms) for message in exchange.messages),
    )


def patience(headers: Headers) -> float | None:
    """The timeout of a client in seconds; None if its headers do not state it."""
    for name in _TIMEOUTS:
        try:
            seconds = float(headers.get(name, ""))
        except ValueError:
            continue
        if 0 < seconds < 10**6:
            return seconds
    return None


def words(difference: Difference) -> str:
    """One line that describes a drift."""
    from wiretape.compare.excerpt import excerpts

    recorded, live = excerpts(difference, 60)
    return f"{difference.where}: recorded {recorded}, live {live}"


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
