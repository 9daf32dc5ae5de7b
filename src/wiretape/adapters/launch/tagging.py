"""Marks what a program prints, line by line, with the number of the call that was answered last: `[3] text`.

The program's output goes through pipes for it: it is no terminal to the program. Standard output and standard error
stay apart; their order is that in which they come out of the pipes.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any

from wiretape.adapters.launch.child import Tag
from wiretape.matching.live import plain_bytes
from wiretape.model.http import BytesBody, Headers, Request
from wiretape.wire.registry import Registry, default_registry

if TYPE_CHECKING:
    from wiretape.adapters.mitm.addon import RecordingDoor

_READ = 65536
_LOOK_AT = 4 * 1024 * 1024  # bytes of a request: what it is shows in those, or in its path


class CallTags:
    """Which call was answered last. A door tells of calls as they come, and when their answers begin."""

    def __init__(self) -> None:
        self._last: int | None = None
        self._count = 0
        self._numbers: dict[int, int] = {}  # exchange -> call

    def __call__(self) -> int | None:
        return self._last

    def asked(self, exchange: int) -> None:
        """A model call has begun: calls are numbered by their starts."""
        self._count += 1
        self._numbers[exchange] = self._count

    def answered(self, exchange: int) -> None:
        self._last = self._numbers.pop(exchange, self._last)

    def answered_more(self, calls: int) -> None:
        """So many calls of a connection that carries several were answered."""
        self._count += calls
        self._last = self._count

    def played(self, call: int) -> None:
        """A call of a tape is given again."""
        self._last = call


class TaggingDoor:
    """Stands before a recorder, and notes which calls come by and are answered."""

    def __init__(self, recorder: RecordingDoor, tags: CallTags, registry: Registry | None = None) -> None:
        self._recorder = recorder
        self._tags = tags
        self._registry = registry or default_registry()
        self._requests: dict[int, tuple[Request, bytearray]] = {}

    def begin(self, method: str, url: str, http: str | None, headers: Iterable[tuple[str, str]]) -> int:
        kept = list(headers)
        number = self._recorder.begin(method, url, http, kept)
        request = Request(method, url, Headers(kept))
        if "upgrade" not in request.headers:
            self._requests[number] = request, bytearray()
        return number

    def request_data(self, x: int, data: bytes) -> None:
        if x in self._requests and len(self._requests[x][1]) < _LOOK_AT:
            self._requests[x][1].extend(data)
        self._recorder.request_data(x, data)

    def request_end(self, x: int) -> None:
        self._recorder.request_end(x)
        request, data = self._requests.pop(x, (None, b""))
        if request is None:
            return
        body = BytesBody(plain_bytes(bytes(data), request.headers.get("content-encoding", "")))
        if self._registry.recognise_request(replace(request, body=body)) is not None:
            self._tags.asked(x)

    def response(self, x: int, status: int, headers: Iterable[tuple[str, str]]) -> None:
        self._tags.answered(x)
        self._recorder.response(x, status, headers)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._recorder, name)


class TaggedLines:
    """One stream. A tag stands where a line begins; what is no text passes as it is, from its first NUL byte on."""

    def __init__(self, tag: Tag) -> None:
        self._tag = tag
        self._at_start = True
        self._binary = False

    def feed(self, data: bytes) -> bytes:
        """The same bytes, with a tag before each line that begins in them. Nothing is held back."""
        self._binary = self._binary or b"\0" in data
        if self._binary or not data:
            return data
        number = self._tag()
        mark = b"[%s] " % (b"-" if number is None else str(number).encode())
        lines = _lines(data)
        begun = mark if self._at_start else b""
        self._at_start = data.endswith(b"\n")
        return begun + mark.join(lines)


def _lines(data: bytes) -> list[bytes]:
    """Lines by their newlines alone: a carriage return stays within its line."""
    parts = data.split(b"\n")
    lines = [part + b"\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


def pump(source: IO[bytes], sink: Callable[[bytes], object]) -> threading.Thread:
    """Hand on what comes out of a pipe as it comes, in a thread that ends with the pipe."""
    thread = threading.Thread(target=_pump, args=(source, sink), name="wiretape-output", daemon=True)
    thread.start()
    return thread


def _pump(source: IO[bytes], sink: Callable[[bytes], object]) -> None:
    with source:
        while data := os.read(source.fileno(), _READ):
            sink(data)


def tagged_onto(descriptor: int, tag: Tag) -> Callable[[bytes], None]:
    """A sink that writes to one of our own streams. When nobody reads that any more, the program goes on unread."""
    lines = TaggedLines(tag)
    broken = False

    def write(data: bytes) -> None:
        nonlocal broken
        if broken:
            return
        left = memoryview(lines.feed(data))
        try:
            while left:
                left = left[os.write(descriptor, left) :]
        except OSError:
            broken = True

    return write
