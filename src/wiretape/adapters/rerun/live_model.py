"""Sends the requests of a rerun to a live endpoint, and optionally records them."""

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

from wiretape.adapters.rerun.endpoints import Endpoint, endpoint_of, region_of, signature
from wiretape.adapters.settings import Settings, redactor_of
from wiretape.errors import UsageError
from wiretape.model.http import BytesBody, Ended, Headers, Request, Response, body_bytes
from wiretape.rerun.plan import RecordedCall
from wiretape.rerun.scheduler import Rerun
from wiretape.rerun.values import CallOutcome, PlannedRequest
from wiretape.tape.recording.recorder import Recorder

if TYPE_CHECKING:
    import httpx

_READ_TIMEOUT = 600  # seconds without a byte
_COPIED = ("content-type", "accept")
_COPIED_PREFIXES = ("anthropic-", "openai-beta")
_TRANSPORT_HEADERS = ("content-encoding", "content-length", "transfer-encoding")


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a live rerun. Without `base_url`, calls are sent to their recorded endpoints."""

    model: str | None = None
    base_url: str | None = None
    key_variable: str | None = None


class LiveModel(AbstractContextManager["LiveModel"]):
    """A live endpoint that answers the requests of a rerun. `record` is the path of a new tape of this traffic."""

    def __init__(
        self,
        target: Target,
        environ: Mapping[str, str] = os.environ,
        record: Path | None = None,
        parent: str | None = None,
        settings: Settings | None = None,
        on_trouble: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._target = target
        self._environ = environ
        self.incomplete = False  # whether recording failed partly; set when the model is closed
        self._recorder: Recorder | None = None
        if record is not None:
            self._recorder = Recorder(
                record,
                clock=time.monotonic,
                started=datetime.now(UTC),
                redactor=redactor_of(settings or Settings()),
                parent=parent,
                on_trouble=on_trouble,
            )
        self._client: httpx.Client | None = None

    def __enter__(self) -> LiveModel:
        import httpx

        self._client = httpx.Client(timeout=httpx.Timeout(_READ_TIMEOUT, connect=30))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            self._client.close()
        if self._recorder is not None:
            self.incomplete = self._recorder.close().incomplete

    def request(self, planned: PlannedRequest, recorded: RecordedCall) -> Request:
        """Return the request as the endpoint receives it."""
        endpoint = endpoint_of(recorded.call.format, planned.request.url)
        url, body = planned.request.url, planned.body
        if self._target.model is not None and recorded.basis is not None:
            url, body = recorded.basis.builder.with_model(url, body, self._target.model)
        if self._target.base_url is not None:
            url = endpoint.under(self._target.base_url, url)
        headers = [
            pair
            for pair in planned.request.headers.pairs()
            if pair[0] in _COPIED or pair[0].startswith(_COPIED_PREFIXES)
        ]
        if not any(name == "content-type" for name, _ in headers):
            headers.append(("content-type", "application/json"))
        url, data = _without_keys(url), _dumped(body)
        auth = self._key_headers(endpoint, url)
        if not auth and (region := region_of(url)) is not None:
            auth = signature(url, headers, data, region)
        return Request("POST", url, Headers([*headers, *auth]), BytesBody(data))

    def answer(self, planned: PlannedRequest, recorded: RecordedCall) -> tuple[Response, Ended]:
        """Send a request and wait for the whole response."""
        import httpx

        assert self._client is not None, "open it with `with`"
        request = self.request(planned, recorded)
        data = body_bytes(request.body)
        number = self._begin(request, data)
        pieces: list[bytes] = []
        try:
            with self._client.stream("POST", request.url, headers=request.headers.pairs(), content=data) as response:
                self._record("response", number, response.status_code, response.headers.multi_items())
                for piece in response.iter_raw():
                    self._record("response_data", number, piece)
                    pieces.append(piece)
                decoded = httpx.Response(200, headers=response.headers, content=b"".join(pieces)).content
        except httpx.TimeoutException as error:
            self._record("end", number, Ended.TIMEOUT)
            raise UsageError(_unreachable(request.url, error, "sent nothing for too long")) from None
        except httpx.HTTPError as error:
            self._record("end", number, Ended.UPSTREAM_UNREACHABLE if not pieces else Ended.UPSTREAM_CLOSED)
            raise UsageError(_unreachable(request.url, error, "could not be reached")) from None
        self._record("end", number, Ended.COMPLETE)
        kept = Headers([pair for pair in response.headers.multi_items() if pair[0].lower() not in _TRANSPORT_HEADERS])
        return Response(response.status_code, kept, 0, BytesBody(decoded)), Ended.COMPLETE

    def _key_headers(self, endpoint: Endpoint, url: str) -> list[tuple[str, str]]:
        name = self._target.key_variable or endpoint.key_variable(urlsplit(url).hostname or "")
        key = self._environ.get(name) if name else None
        if self._target.key_variable and not key:
            raise UsageError(f"{name} is not set: --key-env expects the API key in this variable")
        return endpoint.key_headers(key) if key else []

    def _begin(self, request: Request, data: bytes) -> int:
        if self._recorder is None:
            return 0
        number = self._recorder.begin("POST", request.url, "1.1", request.headers.pairs())
        self._recorder.request_data(number, data)
        self._recorder.request_end(number)
        return number

    def _record(self, event: str, *values: Any) -> None:
        if self._recorder is not None:
            getattr(self._recorder, event)(*values)


def parent_of(tape: Path | None, out: Path) -> str | None:
    """Return the path of a tape relative to the folder of another tape."""
    return Path(os.path.relpath(tape, out.parent)).as_posix() if tape is not None else None


def play_tape(rerun: Rerun) -> None:
    """Answer every request from the tape itself."""
    while (planned := rerun.next()) is not None:
        response = rerun.recorded(planned)
        assert response is not None, "a request without a recorded answer is not planned"
        rerun.answered(response)


def play_live(rerun: Rerun, model: LiveModel, on_outcome: Callable[[CallOutcome], None]) -> None:
    """Answer every request from the live endpoint."""
    while (planned := rerun.next()) is not None:
        response, ended = model.answer(planned, rerun.recorded_call(planned))
        on_outcome(rerun.answered(response, ended))


def _dumped(body: Any) -> bytes:
    import orjson

    return orjson.dumps(body)


def _without_keys(url: str) -> str:
    """Return the URL without the placeholders of API keys in its query; live keys are sent in headers."""
    path, mark, query = url.partition("?")
    kept = "&".join(part for part in query.split("&") if part and not part.startswith(("key=", "api_key=")))
    return f"{path}{mark}{kept}" if kept else path


def _unreachable(url: str, error: Exception, what: str) -> str:
    reason = " ".join(str(error).split()) or type(error).__name__
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc} {what}: {reason}\n  another endpoint: --base-url URL"
