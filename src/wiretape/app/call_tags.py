"""Finds out which model call was answered last, for the tags in front of a program's output lines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wiretape.matching.live import plain_bytes
from wiretape.model.http import BytesBody, Headers, Request
from wiretape.wire.registry import default_registry

if TYPE_CHECKING:
    from wiretape.adapters.mitm.addon import RecorderInterface

_MOST_READ = 4 * 1024 * 1024  # bytes of a request body: enough to recognize its wire format


class CallTags:
    """The number of the model call that was answered last. Calling the object returns it."""

    def __init__(self) -> None:
        self._last: int | None = None
        self._count = 0
        self._numbers: dict[int, int] = {}  # exchange -> call

    def __call__(self) -> int | None:
        return self._last

    def began(self, exchange: int) -> None:
        """Number a model call: calls are numbered by their starts."""
        self._count += 1
        self._numbers[exchange] = self._count

    def answered(self, exchange: int) -> None:
        self._last = self._numbers.pop(exchange, self._last)

    def answered_more(self, calls: int) -> None:
        """Count answered calls of a WebSocket, or calls that were answered from a tape."""
        self._count += calls
        self._last = self._count

    def played(self, call: int) -> None:
        """Note the number that a replayed call has on its tape."""
        self._last = call


class TaggingRecorder:
    """Passes everything to a recorder, and notes model calls and their answers in `CallTags`."""

    def __init__(self, recorder: RecorderInterface, tags: CallTags) -> None:
        self._recorder = recorder
        self._tags = tags
        self._registry = default_registry()
        self._requests: dict[int, tuple[Request, bytearray]] = {}

    def begin(self, method: str, url: str, http: str | None, headers: Iterable[tuple[str, str]]) -> int:
        pairs = list(headers)
        number = self._recorder.begin(method, url, http, pairs)
        request = Request(method, url, Headers(pairs))
        if "upgrade" not in request.headers:
            self._requests[number] = request, bytearray()
        return number

    def request_data(self, x: int, data: bytes) -> None:
        if x in self._requests and len(self._requests[x][1]) < _MOST_READ:
            self._requests[x][1].extend(data)
        self._recorder.request_data(x, data)

    def request_end(self, x: int) -> None:
        self._recorder.request_end(x)
        request, data = self._requests.pop(x, (None, b""))
        if request is None:
            return
        body = BytesBody(plain_bytes(bytes(data), request.headers.get("content-encoding", "")))
        if self._registry.recognise_request(replace(request, body=body)) is not None:
            self._tags.began(x)

    def response(self, x: int, status: int, headers: Iterable[tuple[str, str]]) -> None:
        self._tags.answered(x)
        self._recorder.response(x, status, headers)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._recorder, name)
