"""The side file `NAME.tape.journal`: the bytes of open exchanges, appended before they are forwarded.

A record is one line, `KIND EXCHANGE AT LENGTH`, then LENGTH bytes, then a newline. The first record is the journal's
own head. Finished exchanges stay until the file is rewritten. A reader skips exchanges that the tape has.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import orjson

from wiretape.errors import TapeError
from wiretape.model.http import Close, Ended, Headers
from wiretape.tape.atomic import PRIVATE, ReplacementFile, check_in_place, is_in_place, write_all
from wiretape.tape.damage import Damage
from wiretape.tape.format.codings import CodingError, steps, swells
from wiretape.tape.journal.draft import BodyDraft, Draft, Extent, Extents, MessageDraft
from wiretape.tape.journal.stream_end import TAIL, ends_stream

VERSION = 1
_LARGE = 16_384  # bytes of a record from which on copying it counts
_MOST_AT_ONCE = 4 * 1024 * 1024  # bytes of one read
_GAP = 4096  # bytes of other exchanges that are read along rather than skipped
_NUMBERS = re.compile(rb"\d{1,15} \d{1,15}")
_TORN = re.compile(
    rb"[a-z-]{0,20}\Z|[a-z-]+ [\d.]*\Z|[a-z-]+ [\d.]+ \d*\Z|[a-z-]+ [\d.]+ \d{1,15} (?:\d{1,15}\n|\d{0,15}\Z)"
)


class Journal:
    """A journal that is being written. Safe to use from two threads: one appends, one reads and rewrites."""

    def __init__(self, path: Path, header: dict[str, Any], *, placed: bool = True) -> None:
        """`placed=False`: the file keeps a temporary name until it replaces another journal."""
        self.path = path
        self.lock = threading.RLock()
        self._header = header
        self._aside = ReplacementFile(path, PRIVATE, keep_mode=False)
        self._descriptor = self._aside.descriptor
        self.size = 0
        self._notes: list[tuple[bytes, int, bytes]] = []
        first = {"journal": VERSION, "pid": os.getpid(), "header": header}
        try:
            self.append(b"journal", b"0", 0, orjson.dumps(first))
            if placed:
                self._place()
        except OSError:
            self._aside.discard()
            raise

    def _place(self, over: int | None = None) -> None:
        # Appends do not wait for the disk either: the journal survives a crash of wiretape, but not of the machine.
        self._descriptor = self._aside.place(over, durable=False)

    def append(self, kind: bytes, name: bytes, at: int, payload: bytes = b"") -> Extent:
        """Write a record and hand it to the system. Raises OSError, and leaves the journal as it was."""
        head = b"%b %b %d %d\n" % (kind, name, at, len(payload))
        with self.lock:
            start = self.size
            try:
                _write_record(self._descriptor, head, payload)
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(self._descriptor, start)
                    os.lseek(self._descriptor, start, os.SEEK_SET)
                raise
            self.size = start + len(head) + len(payload) + 1
            return start + len(head), len(payload), at

    def note(self, kind: bytes, at: int, payload: bytes) -> None:
        """Write a record that is about the tape, not about an exchange: it is kept when the journal is rewritten."""
        with self.lock:
            self._notes.append((kind, at, payload))
            self.append(kind, b"0", at, payload)

    def read(self, extent: Extent) -> bytes:
        offset, length, _ = extent
        with self.lock:
            os.lseek(self._descriptor, offset, os.SEEK_SET)
            try:
                return _read_exactly(self._descriptor, length)
            finally:
                os.lseek(self._descriptor, self.size, os.SEEK_SET)

    def read_all(self, extents: Iterable[Extent]) -> list[tuple[int, bytes]]:
        """The bytes at some extents, each with its time: read in few pieces, since chunks mostly stand together."""
        chunks: list[tuple[int, bytes]] = []
        for group in _neighbours(extents):
            start, (last, length, _) = group[0][0], group[-1]
            piece = self.read((start, last + length - start, 0))
            chunks += [(at, piece[offset - start : offset - start + size]) for offset, size, at in group]
        return chunks

    def rewrite(self, drafts: Iterable[Draft]) -> None:
        """Keep only what these drafts still need. If the process is killed, the old journal is left."""
        with self.lock:
            check_in_place(self._descriptor, self.path)
            fresh = Journal(self.path, self._header, placed=False)
            try:
                for kind, at, payload in self._notes:
                    fresh.note(kind, at, payload)
                kept = [(draft, list(_copied(draft, self, fresh))) for draft in drafts]
                fresh._place(over=self._descriptor)
            except OSError:
                fresh._aside.discard()
                raise
            self._descriptor, self.size = fresh._descriptor, fresh.size
            for draft, records in kept:
                draft.request.clear()
                draft.response.clear()
                draft.messages.clear()
                for kind, name, extent in records:
                    place(draft, kind, name, extent)

    def close(self, keep: bool = False) -> bool:
        """Close, and remove the file unless it is to be kept. Return whether it is there; another recorder's is not."""
        ours = is_in_place(self._descriptor, self.path)
        os.close(self._descriptor)
        if ours and not keep:
            with contextlib.suppress(OSError):
                self.path.unlink(missing_ok=True)
        return ours and keep


def _write_record(descriptor: int, head: bytes, payload: bytes) -> None:
    if len(payload) < _LARGE or not hasattr(os, "writev"):
        write_all(descriptor, b"%b%b\n" % (head, payload))
        return
    written = os.writev(descriptor, [head, payload, b"\n"])  # saves copying the payload
    if written < len(head) + len(payload) + 1:
        write_all(descriptor, (b"%b%b\n" % (head, payload))[written:])


def _neighbours(extents: Iterable[Extent]) -> Iterator[list[Extent]]:
    """Extents that stand close together, as one read."""
    group: list[Extent] = []
    for extent in extents:
        far = group and not 0 <= extent[0] - (group[-1][0] + group[-1][1]) <= _GAP
        if far or (group and extent[0] + extent[1] - group[0][0] > _MOST_AT_ONCE):
            yield group
            group = []
        group.append(extent)
    if group:
        yield group


def _read_exactly(descriptor: int, length: int) -> bytes:
    data = os.read(descriptor, length)
    while len(data) < length:
        more = os.read(descriptor, length - len(data))
        if not more:
            raise OSError(f"the journal ends {length - len(data)} bytes too early")
        data += more
    return data


# -- records of a draft ------------------------------------------------------------------------------------------

Record = tuple[bytes, bytes, int, bytes]  # kind, exchange, when, payload
_MESSAGE_KINDS = {b"client-text", b"client-bytes", b"server-text", b"server-bytes"}


def request_payload(draft: Draft) -> bytes:
    return orjson.dumps({"method": draft.method, "url": draft.url, "http": draft.http, "headers": draft.headers})


def response_payload(draft: Draft) -> bytes:
    return orjson.dumps({"status": draft.status, "headers": draft.response_headers})


def end_payload(draft: Draft) -> bytes:
    trailers = draft.trailers.pairs() if draft.trailers is not None else None
    close = [draft.close.code, draft.close.reason, draft.close.sender] if draft.close else None
    return orjson.dumps({"ended": draft.ended, "trailers": trailers, "close": close})


def message_kind(message: MessageDraft) -> bytes:
    return f"{message.sender}-{'text' if message.text else 'bytes'}".encode()


def _records(draft: Draft, read: Any) -> Iterator[Record]:
    """The records that make this draft again."""
    name = b"%d" % draft.number
    yield b"request", name, draft.at, request_payload(draft)
    yield from _body_records(draft.request, b"to", name, read)
    if draft.request_ended:
        yield b"sent", name, draft.at, b""
    if draft.status is not None:
        yield b"response", name, draft.headers_at, response_payload(draft)
    yield from _body_records(draft.response, b"from", name, read)
    if draft.response.whole:
        yield b"whole", name, draft.headers_at, b""
    for message in draft.messages:
        place_name = b"%d.%d" % (draft.number, message.ordinal)
        yield message_kind(message), place_name, message.extent[2], read(message.extent)
    if draft.ended is not None:
        yield b"end", name, draft.ended_at or draft.at, end_payload(draft)


def _copied(draft: Draft, old: Journal, fresh: Journal) -> Iterator[tuple[bytes, bytes, Extent]]:
    """Copy a draft's records; where each stands now."""
    for kind, name, at, payload in _records(draft, old.read):
        yield kind, name, fresh.append(kind, name, at, payload)


def _body_records(body: BodyDraft, kind: bytes, name: bytes, read: Any) -> Iterator[Record]:
    for extent in body.extents:
        yield kind, name, extent[2], read(extent)
    for extent in body.encoded:
        yield kind + b"-encoded", name, extent[2], read(extent)


def _ordinal(digits: bytes) -> int:
    """Return a number of at most 15 digits, as `_NUMBERS` allows. Raises ValueError."""
    if len(digits) > 15:
        raise ValueError(digits)
    return int(digits)


def place(draft: Draft, kind: bytes, name: bytes, extent: Extent) -> None:
    """Note in a draft where the bytes of a record stand."""
    if kind in _MESSAGE_KINDS:
        ordinal = _ordinal(name.partition(b".")[2])
        sender, _, what = kind.decode().partition("-")
        draft.messages.append(
            MessageDraft(ordinal, "client" if sender == "client" else "server", what == "text", extent)
        )
        draft.message_count = max(draft.message_count, ordinal)
        draft.websocket = True
    elif (extents := _extents_of(draft, kind)) is not None:
        extents.add(*extent)


def _extents_of(draft: Draft, kind: bytes) -> Extents | None:
    return {
        b"to": draft.request.extents,
        b"to-encoded": draft.request.encoded,
        b"from": draft.response.extents,
        b"from-encoded": draft.response.encoded,
    }.get(kind)


# -- reading a journal that a crash left ----------------------------------------------------------------------------


@dataclass(slots=True)
class Leftover:
    """What a journal holds. `read` gives the bytes of an extent."""

    path: Path
    data: bytes
    header: dict[str, Any] | None = None
    drafts: dict[int, Draft] = field(default_factory=dict)
    bypassed: list[str] = field(default_factory=list)
    redacted: list[str] = field(default_factory=list)
    client: dict[str, str | list[str]] | None = None
    last_at: int = 0
    warnings: list[str] = field(default_factory=list)
    damage: list[Damage] = field(default_factory=list)

    def read(self, extent: Extent) -> bytes:
        return self.data[extent[0] : extent[0] + extent[1]]

    def read_all(self, extents: Iterable[Extent]) -> list[tuple[int, bytes]]:
        return [(extent[2], self.read(extent)) for extent in extents]


Source: TypeAlias = Journal | Leftover


def read_journal(path: Path) -> Leftover | None:
    """Return the open exchanges of a journal, or None without a journal. A torn last record costs only itself.

    Raises TapeError if the file cannot be opened.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise TapeError(f"{path}: cannot be read: {error.strerror or error}") from None
    left = Leftover(path, data)
    offset = 0
    while offset < len(data):
        found = _next_record(data, offset)
        if found is None or not _take(left, *found[0]):
            _stop_reading(left, offset, whole_record=found is not None)
            break
        offset = found[1]
    for draft in left.drafts.values():
        if draft.request.encoded or draft.response.encoded:
            left.warnings.append(f"{path}: x{draft.number}: the end of a large compressed body is lost")
            if draft.ended is Ended.COMPLETE:
                draft.ended = Ended.RECORDER_STOPPED
        elif draft.ended is None and draft.status is not None and not draft.websocket:
            _end_if_whole(left, draft)
    return left


def _end_if_whole(left: Leftover, draft: Draft) -> None:
    """Complete a response whose body is whole, though the recorder was killed before the end of the exchange."""
    extents = list(draft.response.extents)
    tail = b"".join(left.read(extent) for extent in extents[-TAIL:])
    if draft.response.whole or ends_stream(tail[-TAIL:]):
        draft.ended = Ended.COMPLETE
        draft.ended_at = extents[-1][2] if extents else draft.headers_at


def _stop_reading(left: Leftover, offset: int, whole_record: bool) -> None:
    """Note why a journal is read no further: its last record is cut off, or a record inside it is damaged."""
    rest = left.data[offset:].rstrip(b"\0")  # a crash may leave NULs behind the end
    if not rest or (not whole_record and _TORN.match(rest) and len(rest) <= _longest(rest)):
        left.warnings.append(f"{left.path}: byte {offset}: the last record is cut off; what stood before it is kept")
    else:
        left.damage.append(Damage(left.path, f"the record at byte {offset} cannot be read, nor what follows it"))


def _longest(record: bytes) -> int:
    """How many bytes a record that begins like this may have, if its end is missing."""
    head, newline, _ = record.partition(b"\n")
    return len(head) + 1 + int(head.split(b" ")[3]) if newline else len(record)


def _next_record(data: bytes, offset: int) -> tuple[tuple[bytes, bytes, Extent], int] | None:
    line_end = data.find(b"\n", offset, offset + 200)
    parts = data[offset:line_end].split(b" ") if line_end >= 0 else []
    if len(parts) != 4 or not _NUMBERS.fullmatch(parts[2] + b" " + parts[3]):
        return None
    start, length = line_end + 1, int(parts[3])
    if data[start + length : start + length + 1] != b"\n":
        return None
    return (parts[0], parts[1], (start, length, int(parts[2]))), start + length + 1


def _take(left: Leftover, kind: bytes, name: bytes, extent: Extent) -> bool:
    try:
        _fill(left, kind, name, extent)
    except (ValueError, KeyError, TypeError):
        return False
    left.last_at = max(left.last_at, extent[2])
    return True


def _fill(left: Leftover, kind: bytes, name: bytes, extent: Extent) -> None:
    at = extent[2]
    number = _ordinal(name.partition(b".")[0])
    if kind == b"journal":
        left.header = orjson.loads(left.read(extent))["header"]
    elif kind == b"bypassed":
        left.bypassed.append(left.read(extent).decode())
    elif kind == b"redacted":
        left.redacted = orjson.loads(left.read(extent))
    elif kind == b"client":
        left.client = orjson.loads(left.read(extent))
    elif kind == b"request":
        head = orjson.loads(left.read(extent))
        headers = [(key, value) for key, value in head["headers"]]
        left.drafts[number] = Draft(number, at, head["method"], head["url"], head["http"], headers)
    elif kind == b"sent":
        left.drafts[number].request_ended = True
    elif kind == b"response":
        _fill_response(left.drafts[number], orjson.loads(left.read(extent)), at)
    elif kind == b"whole":
        left.drafts[number].response.whole = True
    elif kind == b"end":
        _fill_end(left.drafts[number], orjson.loads(left.read(extent)), at)
    else:
        place(left.drafts[number], kind, name, extent)


def _fill_response(draft: Draft, head: dict[str, Any], at: int) -> None:
    draft.status, draft.headers_at = head["status"], at
    draft.response_headers = [(key, value) for key, value in head["headers"]]
    draft.websocket = draft.websocket or draft.status == 101


def _fill_end(draft: Draft, tail: dict[str, Any], at: int) -> None:
    draft.ended, draft.ended_at = Ended(tail["ended"]), at
    if tail["trailers"] is not None:
        draft.trailers = Headers((key, value) for key, value in tail["trailers"])
    if tail["close"] is not None:
        draft.close = Close(*tail["close"])


def decoded(body: BodyDraft, journal: Source) -> list[tuple[int, bytes]]:
    """The chunks of a body, (when, bytes), with what was left encoded undone; as they came if that is too much."""
    chunks = journal.read_all(body.extents)
    if not body.deferred or body.decoder is None:
        return chunks
    last = chunks[-1][0] if chunks else 0
    rest = [(last, b""), *journal.read_all(body.encoded)]
    decoded, encoded = sum(len(data) for _, data in chunks), sum(map(len, body.began)) + body.encoded.size
    with contextlib.suppress(CodingError):  # what decodes is kept
        for at, data in rest:
            for piece in steps(body.decoder, data):
                chunks.append((at, piece))
                decoded += len(piece)
                if swells(decoded, encoded):
                    body.kept_encoded = True
                    return [(last, b"".join(body.began)), *rest]
    return chunks
