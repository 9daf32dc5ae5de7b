"""Sends what the scheduler of a rerun asks for to a live endpoint, and records it where that is wished for."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from wiretape.adapters.rerun.endpoints import Place, place_of
from wiretape.errors import UsageError
from wiretape.model.http import BytesBody, Ended, Headers, Request, Response, body_bytes
from wiretape.rerun.plan import Take
from wiretape.rerun.scheduler import Rerun
from wiretape.rerun.values import Row, Send
from wiretape.tape.recording.recorder import Recorder
from wiretape.tape.redaction import Redactor

if TYPE_CHECKING:
    import httpx

_LONGEST = 600  # seconds without a byte: models think
_KEPT = ("content-type", "accept")
_KEPT_PREFIXES = ("anthropic-", "openai-beta")
_UNDONE = ("content-encoding", "content-length", "transfer-encoding")


@dataclass(frozen=True, slots=True)
class Target:
    """Where a live rerun goes. Without `base_url` every call goes where it was recorded."""

    model: str | None = None
    base_url: str | None = None
    key_variable: str | None = None


class LiveModel(AbstractContextManager["LiveModel"]):
    """A live endpoint that answers the requests of a rerun. `record`: a new tape of what crosses the wire."""

    def __init__(
        self,
        target: Target,
        environ: Mapping[str, str] = os.environ,
        record: Path | None = None,
        parent: str | None = None,
        redact: tuple[str, ...] = (),
        on_trouble: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._target = target
        self._environ = environ
        self.incomplete = False  # whether the new tape lacks something; known when it is closed
        self._recorder: Recorder | None = None
        if record is not None:
            self._recorder = Recorder(
                record,
                clock=time.monotonic,
                started=datetime.now(UTC),
                redactor=Redactor(redact),
                parent=parent,
                on_trouble=on_trouble,
            )
        self._client: httpx.Client | None = None

    def __enter__(self) -> LiveModel:
        import httpx

        self._client = httpx.Client(timeout=httpx.Timeout(_LONGEST, connect=30))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            self._client.close()
        if self._recorder is not None:
            self.incomplete = self._recorder.close().incomplete

    def request(self, send: Send, take: Take) -> Request:
        """The request as the endpoint gets it."""
        place = place_of(take.call.format, send.request.url)
        url, body = send.request.url, send.body
        if self._target.model is not None and take.grounds is not None:
            url, body = take.grounds.grower.retarget(url, body, self._target.model)
        if self._target.base_url is not None:
            url = place.under(self._target.base_url, url)
        headers = [pair for pair in send.request.headers.pairs() if _is_kept(pair[0])]
        if not any(name == "content-type" for name, _ in headers):
            headers.append(("content-type", "application/json"))
        url, sent = _without_secrets(url), _json(body)
        key = self._key(place, url) or _signature(url, headers, sent.data)
        return Request("POST", url, Headers([*headers, *key]), sent)

    def answer(self, send: Send, take: Take) -> tuple[Response, Ended]:
        """Send a request and wait for all of its answer."""
        import httpx

        assert self._client is not None, "open it with `with`"
        request = self.request(send, take)
        data = body_bytes(request.body)
        number = self._begin(request, data)
        pieces: list[bytes] = []
        try:
            with self._client.stream("POST", request.url, headers=request.headers.pairs(), content=data) as response:
                self._tell("response", number, response.status_code, response.headers.multi_items())
                for piece in response.iter_raw():
                    self._tell("response_data", number, piece)
                    pieces.append(piece)
                decoded = httpx.Response(200, headers=response.headers, content=b"".join(pieces)).content
        except httpx.TimeoutException as error:
            self._tell("end", number, Ended.TIMEOUT)
            raise UsageError(_unreachable(request.url, error, "sent nothing for too long")) from None
        except httpx.HTTPError as error:
            self._tell("end", number, Ended.UPSTREAM_UNREACHABLE if not pieces else Ended.UPSTREAM_CLOSED)
            raise UsageError(_unreachable(request.url, error, "could not be reached")) from None
        self._tell("end", number, Ended.COMPLETE)
        kept = Headers([pair for pair in response.headers.multi_items() if pair[0].lower() not in _UNDONE])
        return Response(response.status_code, kept, 0, BytesBody(decoded)), Ended.COMPLETE

    def _key(self, place: Place, url: str) -> list[tuple[str, str]]:
        name = self._target.key_variable or place.key_variable(urlsplit(url).hostname or "")
        key = self._environ.get(name) if name else None
        if self._target.key_variable and not key:
            raise UsageError(f"{name} is not set: it was named as the variable that holds the API key")
        return place.key_headers(key) if key else []

    def _begin(self, request: Request, data: bytes) -> int:
        if self._recorder is None:
            return 0
        number = self._recorder.begin("POST", request.url, "1.1", request.headers.pairs())
        self._recorder.request_data(number, data)
        self._recorder.request_end(number)
        return number

    def _tell(self, event: str, *values: Any) -> None:
        if self._recorder is not None:
            getattr(self._recorder, event)(*values)


def parent_of(tape: Path | None, out: Path) -> str | None:
    """The tape that another one comes from, by its place as seen from that."""
    return Path(os.path.relpath(tape, out.parent)).as_posix() if tape is not None else None


def play_tape(rerun: Rerun, on_row: Callable[[Row], None] = lambda row: None) -> None:
    """Answer every request from the tape itself."""
    while (send := rerun.next()) is not None:
        response = rerun.recorded(send)
        assert response is not None, "without an answer there is no request"
        on_row(rerun.answered(response))


def play_live(rerun: Rerun, model: LiveModel, on_row: Callable[[Row], None] = lambda row: None) -> None:
    """Answer every request from the live endpoint."""
    while (send := rerun.next()) is not None:
        take = rerun.take_of(send)
        response, ended = model.answer(send, take)
        on_row(rerun.answered(response, ended))


def _is_kept(name: str) -> bool:
    return name in _KEPT or name.startswith(_KEPT_PREFIXES)


def _signature(url: str, headers: list[tuple[str, str]], data: bytes) -> list[tuple[str, str]]:
    """What an endpoint wants that knows no keys; empty for all others."""
    from wiretape.adapters.rerun.aws_signing import region_of, signature

    region = region_of(url)
    return signature(url, headers, data, region) if region is not None else []


def _json(body: Any) -> BytesBody:
    import orjson

    return BytesBody(orjson.dumps(body))


def _without_secrets(url: str) -> str:
    """Keys travel in headers here: what stood in the recorded URL is a placeholder."""
    path, mark, query = url.partition("?")
    kept = "&".join(part for part in query.split("&") if part and not part.startswith(("key=", "api_key=")))
    return f"{path}{mark}{kept}" if kept else path


def _unreachable(url: str, error: Exception, what: str) -> str:
    said = " ".join(str(error).split()) or type(error).__name__
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc} {what}: {said}\n  another endpoint: --base-url URL"
