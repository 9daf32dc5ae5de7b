"""Calls real models for held calls of a replay, and records the answers on a new tape."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from wiretape.adapters.inprocess.exchange_recorder import ExchangeRecorder, SafeRecorder
from wiretape.adapters.live.exchanges import body_of
from wiretape.adapters.routing.dummy_keys import DUMMY_KEY
from wiretape.adapters.routing.hosts import is_loopback
from wiretape.adapters.settings import Settings, redactor_of
from wiretape.errors import TapeError, UsageError
from wiretape.matching.values import LiveRequest
from wiretape.model.http import Headers, Response
from wiretape.tape.recording.recorder import Recorder
from wiretape.tape.storage import free_derived_name

_TIMEOUT = 600  # seconds without a byte
_NOT_SENT = frozenset(
    {"host", "connection", "content-length", "transfer-encoding", "proxy-connection", "accept-encoding", "te"}
)
_UNDONE = ("content-encoding", "content-length", "transfer-encoding")


async def call_model(request: LiveRequest, at: int, tape: LiveTape | None = None) -> Response:
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


class LiveTape:
    """A tape that is created with its first answer. `path`: its path; `kept`: the number of answers.

    `incomplete`: True if data is missing; set by `close`.
    """

    def __init__(
        self, played: Path, settings: Settings | None = None, on_trouble: Callable[[str], None] = print
    ) -> None:
        self.path = free_derived_name(played, "live")
        self.kept = 0
        self.incomplete = False
        self._played = played
        self._settings = settings or Settings()
        self._on_trouble = on_trouble
        self._recorder: Recorder | None = None
        self._safe_recorder: SafeRecorder | None = None

    def begin(self, request: LiveRequest) -> ExchangeRecorder | None:
        """Begin to record a request. Raises UsageError if the tape cannot be written: then send nothing."""
        if self._safe_recorder is None:
            self._safe_recorder = SafeRecorder(self._open(), self._on_trouble)
        exchange = self._safe_recorder.begin(request.method, request.url, request.headers.pairs())
        if exchange is not None:
            exchange.sent(request.body)
            exchange.sent_all()
        return exchange

    def close(self) -> None:
        if self._recorder is not None:
            self.incomplete = self._recorder.close().incomplete

    def _open(self) -> Recorder:
        shown = os.path.relpath(self._played, self.path.parent)
        try:
            self._recorder = Recorder(
                self.path,
                clock=time.monotonic,
                started=datetime.now(UTC),
                redactor=redactor_of(self._settings, continues=self._played),
                note=f"called live in the debugger, while {Path(shown).as_posix()} was played",
                on_trouble=self._on_trouble,
            )
        except TapeError as error:
            raise UsageError(f"the request was not sent, because its answer could not be recorded: {error}") from None
        return self._recorder
