"""The Recorder: the sans-IO front of every adapter that records (proxy, server, in-process transport).

Its event methods never raise, and do little more than an append to the journal. Two threads may call them at the same
time, for different exchanges: a proxy's event loop, which also begins exchanges, and its worker for large chunks.
A third thread (`writer_thread`) builds the documents when an exchange's request or response is over. If recording
fails, traffic continues, the tape states that it is incomplete, and `on_trouble` gets one message for each kind of
trouble.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Concatenate, ParamSpec

import orjson

from wiretape._version import __version__
from wiretape.model.framing import Framer, framer_for
from wiretape.model.http import Close, Ended, Exchange, Headers, Sender, WsMessage
from wiretape.tape.client_versions import ClientVersions, Values
from wiretape.tape.editing.edit import redact_tape
from wiretape.tape.format.codings import CodingError, decoder_for
from wiretape.tape.format.documents import VERSION, Header
from wiretape.tape.journal.draft import BodyDraft, Draft, MessageDraft
from wiretape.tape.journal.journal import Journal, end_payload, message_kind, request_payload, response_payload
from wiretape.tape.journal.redaction_cache import RecentBodies
from wiretape.tape.journal.stream_end import body_length, ends_stream, tail_of
from wiretape.tape.recording.header_cache import HeaderCache, clean_text
from wiretape.tape.recording.open import open_tape, recorded_since
from wiretape.tape.recording.recording_errors import RecordingErrors
from wiretape.tape.recording.writer_thread import WriterThread
from wiretape.tape.redaction import Redactor, Regions
from wiretape.tape.storage import read_text

P = ParamSpec("P")
_MOST_ON_ARRIVAL = 4 * 1024 * 1024  # decoded bytes of one body; the writer thread decodes the rest


@dataclass(frozen=True, slots=True)
class RecorderSummary:
    """How a recording went."""

    exchanges: int
    """How many were recorded and are on disk."""
    troubles: tuple[str, ...]
    bypassed: tuple[str, ...]
    incomplete: bool
    path: Path
    """Where they are: the tape, or another one if another file has its name by now."""
    written: tuple[str, ...] = ()
    """The names of credentials that a model wrote into tool arguments, and which are on the tape."""


def _harmless(method: Callable[Concatenate[Recorder, P], None]) -> Callable[Concatenate[Recorder, P], None]:
    """Design law 7: whatever fails in recording, the traffic flows on."""

    def guarded(self: Recorder, /, *args: P.args, **kwargs: P.kwargs) -> None:
        if self._summary is not None:
            return  # closed: the proxy still reports connections that it closes
        try:
            method(self, *args, **kwargs)
        except Exception as error:
            number = args[0] if args and isinstance(args[0], int) else None
            self._troubles.add(error, number)
            if number is not None and number in self._open:
                self._open[number].lost = True

    return functools.update_wrapper(guarded, method)


class Recorder:
    """Records exchanges to a tape, which it continues (`append`) or replaces.

    Raises a TapeError when it is made and the tape cannot be written; never later.
    """

    def __init__(
        self,
        path: Path,
        *,
        clock: Callable[[], float],
        started: datetime,
        redactor: Redactor,
        note: str | None = None,
        provenance: str | None = None,
        parent: str | None = None,
        on_exchange: Callable[[Exchange], None] | None = None,
        on_trouble: Callable[[str], None] | None = None,
        on_message: Callable[[Exchange, WsMessage], None] | None = None,
        append: bool = False,
        replace: bool = True,
    ) -> None:
        self._clock = clock
        self._zero = clock()
        self._redactor = redactor
        self._troubles = RecordingErrors(path, on_trouble)
        header = Header(
            wiretape=VERSION,
            started=started,
            recorder=f"wiretape {__version__}",
            note=note,
            provenance=provenance,
            parent=parent,
        )
        self._opened = open_tape(path, header, redactor, append, replace)
        for warning in self._opened.warnings:
            self._troubles.warn(warning)
        self._offset = self._opened.milliseconds_before(started)
        self._last_number = self._opened.last_number
        self._journal: Journal = self._opened.journal
        self._open: dict[int, Draft] = {}
        self._bypassed = list(self._opened.header.bypassed or ())
        self._kinds = 0
        self._repeats = RecentBodies()
        self._client = ClientVersions(self._opened.header.client)
        self._heads = HeaderCache(redactor, self._note_client)
        self._answer_heads = HeaderCache(redactor)
        self._summary: RecorderSummary | None = None
        self._binder = WriterThread(self._opened, redactor, self._troubles, on_exchange, on_message, self._now)

    def _now(self) -> int:
        return self._offset + round((self._clock() - self._zero) * 1000)

    # -- events ----------------------------------------------------------------------------------------------------

    def begin(self, method: str, url: str, http: str | None, headers: Iterable[tuple[str, str]]) -> int:
        """A request starts. Returns the exchange's number, always."""
        self._last_number += 1
        self._begin(self._last_number, method, url, http, headers)
        return self._last_number

    @_harmless
    def _begin(self, number: int, method: str, url: str, http: str | None, headers: Iterable[tuple[str, str]]) -> None:
        url = clean_text(url)
        draft = Draft(number, self._now(), clean_text(method), "", http, [])
        self._open[number] = draft
        draft.headers = self._heads.headers(headers, url)
        draft.url = self._redactor.url(url)
        draft.request.decoder = _decoder(draft.headers)
        draft.request.searched = self._repeats.begin(self._redactor.search())
        self._binder.follow(draft)
        self._journal.append(b"request", b"%d" % number, draft.at, request_payload(draft))

    @_harmless
    def request_data(self, x: int, data: bytes) -> None:
        """A chunk of the request's body, content-encoded as on the wire."""
        self._data(self._draft(x), self._draft(x).request, b"to", data)

    @_harmless
    def request_end(self, x: int) -> None:
        draft = self._draft(x)
        if draft.request_ended:
            return
        self._flush(draft, draft.request, b"to")
        if draft.request.searched is not None:
            draft.request.searched.done()
            draft.request.searched = None
        self._journal.append(b"sent", b"%d" % x, self._now())
        draft.request_ended = True
        self._binder.request(draft)

    @_harmless
    def response(self, x: int, status: int, headers: Iterable[tuple[str, str]]) -> None:
        """The response's head has come."""
        draft = self._draft(x)
        draft.response_headers = self._answer_heads.headers(headers)
        draft.response.decoder = _decoder(draft.response_headers)
        draft.response.framer = _framer(draft.response_headers)
        draft.headers_at = self._now()
        draft.status = status
        draft.websocket = draft.websocket or status == 101
        draft.response.length = body_length(draft.method, status, draft.response_headers)
        self._journal.append(b"response", b"%d" % x, draft.headers_at, response_payload(draft))
        self._note_whole(draft)
        self._note_kinds()

    @_harmless
    def response_data(self, x: int, data: bytes) -> None:
        """A chunk of the response's body, content-encoded as on the wire."""
        draft = self._draft(x)
        self._data(draft, draft.response, b"from", data)
        draft.response.received += len(data)
        self._note_whole(draft)

    @_harmless
    def end(self, x: int, ended: Ended, trailers: Iterable[tuple[str, str]] | None = None) -> None:
        """The exchange is over. Only the first call for an exchange counts."""
        if x not in self._open:
            return
        draft = self._open.pop(x)
        try:
            self._finish(draft, ended, trailers)
        finally:
            self._binder.end(draft)

    @_harmless
    def message(self, x: int, sender: Sender, data: str | bytes) -> None:
        """One whole WebSocket message, decompressed: text as `str`, binary as `bytes`."""
        draft = self._draft(x)
        text = isinstance(data, str)
        raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
        message = MessageDraft(draft.message_count + 1, sender, text, (0, 0, 0))
        name = b"%d.%d" % (x, message.ordinal)
        clean = self._redactor.data(raw)
        with self._journal.lock:
            message.extent = self._journal.append(message_kind(message), name, self._now(), clean)
            draft.messages.append(message)
        draft.websocket, draft.message_count = True, message.ordinal
        self._binder.message(draft)

    @_harmless
    def close_ws(self, x: int, code: int, reason: str, sender: Sender | None) -> None:
        """How the WebSocket was closed; `end` follows."""
        self._draft(x).close = Close(code, self._redactor.text(clean_text(reason)), sender)

    @_harmless
    def bypassed(self, host: str) -> None:
        """Note a host whose traffic is passed through unrecorded."""
        if host not in self._bypassed:
            self._bypassed.append(host)
            self._journal.note(b"bypassed", self._now(), clean_text(host).encode())

    def close(self) -> RecorderSummary:
        """Write everything out. Exchanges that are still open end as `recorder_stopped`."""
        if self._summary is None:
            for number in list(self._open):
                self.end(number, Ended.RECORDER_STOPPED)
            self._binder.close({"bypassed": self._bypassed or None, "client": self._clean_client()})
            self._remove_late_secrets()
            before = self._opened.last_number
            incomplete = self._troubles.incomplete
            self._summary = RecorderSummary(
                recorded_since(self._opened.path, before) if incomplete else self._last_number - before,
                (*self._troubles.told, *self._troubles.warnings),
                tuple(self._bypassed),
                incomplete,
                self._opened.path,
                tuple(self._redactor.written),
            )
        return self._summary

    def _remove_late_secrets(self) -> None:
        """A secret that first came in a credential header after it had been written elsewhere is on the tape."""
        with contextlib.suppress(Exception):
            path = self._opened.path
            if not self._redactor.late or not (kinds := self._redactor.leaks(read_text(path))):
                return
            secret = f"{path}: a secret ({', '.join(sorted(kinds))}) had been written before it was known as one"
            try:
                redact_tape(path, path, self._redactor)
                self._troubles.warn(f"{secret}; it has been removed")
            except Exception as error:
                self._troubles.warn(f"{secret}, and it is still there: {error}; do not share this tape")

    # -- bodies ----------------------------------------------------------------------------------------------------

    def _draft(self, number: int) -> Draft:
        return self._open[number]

    def _data(self, draft: Draft, body: BodyDraft, kind: bytes, data: bytes) -> None:
        """Undo the content-encoding, take known secrets out, append to the journal."""
        if not data or draft.lost:
            return
        at = self._now()
        if body.deferred:
            self._append(draft, body, kind + b"-encoded", at, data)
            return
        if body.decoder is not None:
            body.began.append(data)
            try:
                plain = body.decoder.feed(data, _MOST_ON_ARRIVAL)
            except CodingError:
                body.decoder, plain = None, data  # a content-encoding that is not true
                body.began.clear()
            body.decoded += len(plain)
            self._plain(draft, body, kind, at, plain)
            if body.decoder is not None and body.decoded >= _MOST_ON_ARRIVAL:
                # Decoding so large a body takes too long here. The writer thread continues with its decoder.
                self._flush(draft, body, kind)
                body.deferred = True
            return
        self._plain(draft, body, kind, at, data)

    def _plain(self, draft: Draft, body: BodyDraft, kind: bytes, at: int, data: bytes) -> None:
        """Append text up to where a secret may have begun; keep the rest until more comes."""
        if not data:
            return
        if body.framer is not None:
            self._append(draft, body, kind, at, self._whole_frames(body.framer.feed(data)))
            return
        text = body.held + data
        cut = len(text) - self._redactor.unfinished(text)
        ready, held = (text, b"") if cut == len(text) else (text[:cut], text[cut:])
        if ready:
            clean = self._clean(body, ready)
            # Held bytes arrived earlier than the rest. Responses need both times, because their frames are timed.
            if clean is ready and body is draft.response and 0 < len(body.held) < len(ready):
                before = len(body.held)
                self._append(draft, body, kind, body.held_at, ready[:before])
                self._append(draft, body, kind, at, ready[before:])
            else:
                self._append(draft, body, kind, at, clean)
            body.held_at = at
        elif not body.held:
            body.held_at = at
        body.held = held

    def _whole_frames(self, frames: list[bytes]) -> bytes:
        """Binary frames carry their length and checksum: a secret is taken out of a whole one only."""
        return b"".join(self._redactor.frames(frames)[0])

    def _clean(self, body: BodyDraft, data: bytes) -> bytes:
        body.regions.add(data)
        if body.searched is None or body.searched.version is not self._redactor.search():
            return self._redactor.data(data, body.regions)
        # A part of the data is searched alone. If that finds a secret, the data is searched with all text before it.
        return body.searched.clean(data, lambda part: self._redactor.data(part, body.regions if part is data else None))

    def _append(self, draft: Draft, body: BodyDraft, kind: bytes, at: int, data: bytes) -> None:
        if not data:
            return
        with self._journal.lock:  # the other thread may rewrite the journal: the draft must know all that is in it
            extent = self._journal.append(kind, b"%d" % draft.number, at, data)
            (body.encoded if kind.endswith(b"-encoded") else body.extents).add(*extent)
        if kind == b"from":
            body.tail = tail_of(body.tail, data)

    def _flush(self, draft: Draft, body: BodyDraft, kind: bytes) -> None:
        held, body.held = body.held, b""
        if held and not draft.lost:
            self._append(draft, body, kind, body.held_at, self._clean(body, held))
        framer, body.framer = body.framer, None
        if framer is not None and not draft.lost:
            self._append(draft, body, kind, self._now(), self._whole_frames(framer.close()))
        body.regions = Regions()  # it holds chunks, and the draft may wait long for the other thread

    def _note_whole(self, draft: Draft) -> None:
        """Note that a body has reached its length, before its client gets the last byte of it.

        The end of the exchange comes after that: a recorder that is killed in between has lost nothing.
        """
        body = draft.response
        if body.whole or body.length is None or body.received < body.length:
            return
        if draft.lost or draft.websocket or body.deferred:
            return
        self._flush(draft, body, b"from")
        self._journal.append(b"whole", b"%d" % draft.number, self._now())
        body.whole = True

    def _finish(self, draft: Draft, ended: Ended, trailers: Iterable[tuple[str, str]] | None) -> None:
        draft.ended_at = self._now()
        self._flush(draft, draft.request, b"to")
        self._flush(draft, draft.response, b"from")
        left = ended in (Ended.CLIENT_CLOSED, Ended.RECORDER_STOPPED)
        if draft.response.whole or (left and ends_stream(draft.response.tail)):
            ended = Ended.COMPLETE
        # Bytes are missing: the answer must not look complete.
        draft.ended = Ended.RECORDER_STOPPED if draft.lost else ended
        if trailers is not None:
            draft.trailers = Headers(self._answer_heads.headers(trailers))
        self._journal.append(b"end", b"%d" % draft.number, draft.ended_at, end_payload(draft))
        self._note_kinds()

    def _note_client(self, headers: Iterable[tuple[str, str]]) -> None:
        if self._client.note(headers):
            self._journal.note(b"client", self._now(), orjson.dumps(self._client.values))

    def _clean_client(self) -> Values | None:
        """A value may hold what became known as a secret only later."""
        told = self._client.values
        return None if told is None else self._redactor.value(told)

    def _note_kinds(self) -> None:
        kinds = self._redactor.kinds
        if len(kinds) != self._kinds:
            self._kinds = len(kinds)
            self._journal.note(b"redacted", self._now(), orjson.dumps(sorted(kinds)))


def _framer(headers: list[tuple[str, str]]) -> Framer | None:
    """What splits a binary stream; text is cut anywhere."""
    types = [value for name, value in headers if name == "content-type"]
    framer = framer_for(types[-1], b"") if types else None
    return framer if framer is not None and framer.binary else None


def _decoder(headers: list[tuple[str, str]]) -> Any:
    encodings = ",".join(value for name, value in headers if name == "content-encoding")
    return decoder_for(encodings) if encodings else None
