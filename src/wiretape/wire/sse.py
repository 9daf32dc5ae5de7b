"""Decodes server-sent events and newline-delimited JSON, from chunks split anywhere.

Data stays bytes, so a chunk may end inside a character. Comments and unknown fields are skipped, except a
field with a JSON object, which becomes an event. An event with only a
name is kept; its data is empty.
"""

from __future__ import annotations

from typing import NamedTuple

_BOM = b"\xef\xbb\xbf"


class SseEvent(NamedTuple):
    """One event: its name ("" if absent), its data lines joined by newlines, and its id."""

    name: str
    data: bytes
    id: str | None = None

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


class SseDecoder:
    """Decodes server-sent events. `close` returns the last event, which may lack its blank line."""

    __slots__ = ("_begun", "_buffer", "_data", "_id", "_name")

    def __init__(self) -> None:
        self._buffer = bytearray()  # the incomplete line
        self._name = ""
        self._data: list[bytes] = []
        self._id: str | None = None
        self._begun = False

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Return the events that this chunk completes."""
        if self._begun and not self._buffer and not self._data and not self._name:
            event = self._whole(chunk)
            if event is not None:
                return [event]
        if self._begun and b"\n" not in chunk and b"\r" not in chunk and not self._buffer.endswith(b"\r"):
            self._buffer += chunk  # avoids joining and searching the line again for each chunk
            return []
        buffer = bytes(self._buffer) + chunk if self._buffer else chunk
        if not self._begun:
            if len(buffer) < 3 and _BOM.startswith(buffer):
                self._buffer = bytearray(buffer)
                return []
            self._begun = True
            buffer = buffer.removeprefix(_BOM)
        if buffer.endswith(b"\n"):
            self._buffer.clear()
            return self._lines(buffer.splitlines())
        lines = buffer.splitlines(keepends=True)
        # A final "\r" may be half of "\r\n": the next chunk decides.
        self._buffer = bytearray(lines.pop() if lines else b"")
        return self._lines([line.rstrip(b"\r\n") for line in lines])

    def _whole(self, chunk: bytes) -> SseEvent | None:
        """Return the event of a chunk that is exactly one frame in the usual spelling (fast path of most chunks)."""
        name, data = b"", chunk
        if chunk.startswith(b"event: "):
            name, _, data = chunk[7:].partition(b"\n")
        if not data.startswith(b"data: ") or data.find(b"\n") != len(data) - 2 or b"\r" in chunk:
            return None
        if not data.endswith(b"\n\n"):
            return None
        return SseEvent(name.decode("utf-8", "replace"), data[6:-2], self._id)

    def close(self) -> list[SseEvent]:
        """Return the rest at the end of the stream."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        events = self._lines(rest.splitlines())
        if self._data or self._name:
            events.append(self._dispatch())
        return events

    def _lines(self, lines: list[bytes]) -> list[SseEvent]:
        events: list[SseEvent] = []
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[6:] if line[5:6] == b" " else line[5:])
            elif not line:
                if self._data or self._name:
                    events.append(self._dispatch())
            elif not line.startswith(b":"):
                self._field(line)
        return events

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"event":
            self._name = value.decode("utf-8", "replace")
        elif name == b"data":  # a line without a colon
            self._data.append(value)
        elif name == b"id":
            self._id = value.decode("utf-8", "replace")
        elif name != b"retry" and name.isalpha() and value[:1] == b"{":  # not in the standard: `error: {…}` (GPUStack)
            self._name = name.decode()
            self._data.append(value)

    def _dispatch(self) -> SseEvent:
        data = self._data
        event = SseEvent(self._name, data[0] if len(data) == 1 else b"\n".join(data), self._id)
        self._name = ""
        self._data = []
        return event


class NdjsonDecoder:
    """Decodes one JSON text per line; blank lines are skipped. It has the same methods as `SseDecoder`."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, chunk: bytes) -> list[SseEvent]:
        if b"\n" not in chunk:
            self._buffer += chunk
            return []
        *lines, rest = (bytes(self._buffer) + chunk).split(b"\n")
        self._buffer = bytearray(rest)
        return [SseEvent("", line) for line in map(bytes.strip, lines) if line]

    def close(self) -> list[SseEvent]:
        rest = bytes(self._buffer).strip()
        self._buffer.clear()
        return [SseEvent("", rest)] if rest else []
