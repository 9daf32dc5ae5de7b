"""The writer thread: builds documents from the journal and appends them to the tape."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from typing import TypeAlias

from wiretape.model.http import Exchange, Request, Response, WsMessage
from wiretape.tape.atomic import put_in_place
from wiretape.tape.format.codings import MOST_DECODED, MOST_TIMES
from wiretape.tape.journal.draft import Draft
from wiretape.tape.journal.recovery import request_bytes, request_head, response_of, write_message
from wiretape.tape.recording.open import OpenTape
from wiretape.tape.recording.recording_errors import RecordingErrors
from wiretape.tape.redaction import Redactor
from wiretape.tape.storage import free_name, journal_path
from wiretape.tape.writing.writer import TapeWriter, document_text, header_document

Job: TypeAlias = Callable[[], None]
_REWRITE_FROM = 8 * 1024 * 1024  # journal bytes: a larger one is rewritten when little of it is still needed
_REWRITE_MOST = 512 * 1024  # bytes still needed; rewriting them takes less than a millisecond
_GATHER_S = 0.05  # how long ended exchanges wait for others; the journal has them
_MOST_MESSAGES = 4 * 1024 * 1024  # bytes of WebSocket messages that `on_exchange` is shown; the tape has them all


class Progress:
    """What of an exchange is on the tape, and what `on_exchange` will be shown."""

    __slots__ = ("messages", "request", "response", "shown")

    def __init__(self) -> None:
        self.request: Request | None = None
        self.response: Response | None = None
        self.messages: list[WsMessage] = []
        self.shown = 0


class WriterThread:
    """Writes drafts to the tape, in the order of their events."""

    def __init__(
        self,
        opened: OpenTape,
        redactor: Redactor,
        troubles: RecordingErrors,
        on_exchange: Callable[[Exchange], None] | None,
        on_message: Callable[[Exchange, WsMessage], None] | None,
        now: Callable[[], int],
    ) -> None:
        self._opened = opened
        self._journal = opened.journal
        self._redactor = redactor
        self._troubles = troubles
        self._on_exchange, self._on_message = on_exchange, on_message
        self._now = now
        self._writer = TapeWriter(
            lambda document: opened.file.append(document, before=b"\n"), redactor, heads_clean=True
        )
        self._live: dict[int, Draft] = {}
        self._progress: dict[int, Progress] = {}
        self._failed: list[Draft] = []
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="wiretape-recorder", daemon=True)
        self._thread.start()

    # -- called from the adapter's thread ----------------------------------------------------------------------------

    def follow(self, draft: Draft) -> None:
        """A draft begins: the journal must keep what it needs."""
        with self._journal.lock:
            self._live[draft.number] = draft

    def request(self, draft: Draft) -> None:
        self._jobs.put(lambda: self._bind_request(draft))

    def message(self, draft: Draft) -> None:
        self._jobs.put(lambda: self._bind_messages(draft))

    def end(self, draft: Draft) -> None:
        self._jobs.put(lambda: self._bind_end(draft))

    def close(self, told: Mapping[str, object]) -> None:
        """Wait for everything to be written. `told`: members of the header that are known at the end only."""
        self._closing.set()
        self._jobs.put(None)
        self._thread.join()
        self._guard(None, self._retry)
        if self._troubles.incomplete:  # the disk may be full: the journal has what the tape has
            self._guard(None, self._rewrite_journal)
        said = self._guard(None, self._say_incomplete)
        finished = self._guard(None, lambda: self._finish(told))
        with contextlib.suppress(OSError):
            # A journal that stays tells the reader that the tape is incomplete, and holds what there is.
            left = self._journal.close(keep=bool(self._failed) or not (said and finished))
            if left and self._opened.file.is_replaced:
                self._rename_journal()

    # -- in the thread -----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while (job := self._next()) is not None:
            job()
            if self._journal.size > _REWRITE_FROM:
                self._guard(None, self._rewrite_journal)

    def _next(self) -> Job | None:
        """The next job, or None at the end. After a rest, jobs gather first: waking for each would cost the adapter's
        thread more, in switches between the two, than the work itself."""
        if not self._jobs.empty():
            return self._jobs.get()
        job = self._jobs.get()
        self._closing.wait(_GATHER_S)
        return job

    def _guard(self, draft: Draft | None, job: Job) -> bool:
        try:
            job()
        except Exception as error:
            self._troubles.add(error, draft.number if draft else None)
            return False
        return True

    def _show_harmlessly(self, show: Job) -> None:
        """Call a listener. A failing listener is reported once and does not change the tape."""
        try:
            show()
        except Exception as error:
            self._troubles.listener(error)

    def _bind_request(self, draft: Draft) -> None:
        # If it fails, the end tries again.
        self._guard(draft, lambda: self._write_request(draft))

    def _bind_messages(self, draft: Draft) -> None:
        self._guard(draft, lambda: self._write_up_to_messages(draft))

    def _bind_end(self, draft: Draft) -> None:
        if self._guard(draft, lambda: self._write_all(draft)):
            with self._journal.lock:
                self._live.pop(draft.number, None)
            self._tell(draft)
        else:
            self._failed.append(draft)

    def _write_request(self, draft: Draft) -> None:
        if draft.request_written:
            return
        raw = request_bytes(draft, self._journal)
        self._say_encoded(draft, draft.request.kept_encoded, "request")
        written = self._writer.request(draft.number, draft.at, request_head(draft), raw)
        draft.request_written = True
        self._progress.setdefault(draft.number, Progress()).request = written
        with self._journal.lock:
            draft.request.clear()

    def _write_response(self, draft: Draft) -> None:
        if draft.status is None or draft.response_written:
            return
        at = draft.headers_at if draft.websocket or draft.ended_at is None else draft.ended_at
        ended = None if draft.websocket else draft.ended
        response = response_of(draft, self._journal)
        self._say_encoded(draft, draft.response.kept_encoded, "response")
        self._progress[draft.number].response = self._writer.response(draft.number, at, response, ended)
        draft.response_written = True
        with self._journal.lock:
            draft.response.clear()

    def _say_encoded(self, draft: Draft, kept: bool, what: str) -> None:
        if kept:
            self._troubles.warn(
                f"{self._opened.path}: x{draft.number}: the body of the {what} decodes to more than "
                f"{MOST_DECODED >> 20} MB and {MOST_TIMES} times its size: it is kept encoded, as it came"
            )

    def _write_up_to_messages(self, draft: Draft) -> None:
        self._write_request(draft)
        self._write_response(draft)
        while draft.messages:
            message = write_message(self._writer, draft, draft.messages[0], self._journal)
            with self._journal.lock:
                first = draft.messages.pop(0)
            self._show(draft, message, first.extent[1])

    def _show(self, draft: Draft, message: WsMessage, size: int) -> None:
        progress = self._progress[draft.number]
        progress.shown += size
        if progress.shown > _MOST_MESSAGES:
            progress.messages.clear()
        else:
            progress.messages.append(message)
        if self._on_message is not None and progress.request is not None:
            tell, request = self._on_message, progress.request
            exchange = Exchange(draft.number, draft.at, request, progress.response)  # still open, and without messages
            self._show_harmlessly(lambda: tell(exchange, message))

    def _write_all(self, draft: Draft) -> None:
        if draft.websocket:
            self._write_up_to_messages(draft)
        else:
            self._write_request(draft)
            self._write_response(draft)
        if draft.ended is not None and (draft.websocket or draft.status is None) and not draft.ended_written:
            self._writer.ended(draft.number, draft.ended_at or draft.at, draft.ended, draft.close)
            draft.ended_written = True

    def _tell(self, draft: Draft) -> None:
        progress = self._progress.pop(draft.number)
        if self._on_exchange is None or progress.request is None:
            return
        exchange = Exchange(
            draft.number,
            draft.at,
            progress.request,
            progress.response,
            draft.ended,
            draft.ended_at,
            tuple(progress.messages),
            draft.close,
        )
        tell = self._on_exchange
        self._show_harmlessly(lambda: tell(exchange))

    def _rewrite_journal(self) -> None:
        """Drop from the journal what the tape has, unless too much of it is still needed."""
        if self._is_much_needed():  # checked first: waiting for the disk after each exchange is slow
            return
        self._opened.file.check_in_place()  # what the journal drops must be on the tape, and the tape on the disk
        self._opened.file.sync()
        with self._journal.lock:
            if not self._is_much_needed():
                self._journal.rewrite(self._live.values())

    def _is_much_needed(self) -> bool:
        """True if open exchanges need more bytes of the journal than one rewrite copies."""
        needed = 0
        with self._journal.lock:
            for draft in self._live.values():
                needed += draft.in_journal
                if needed > _REWRITE_MOST:
                    return True
        return False

    # -- at the end --------------------------------------------------------------------------------------------------

    def _retry(self) -> None:
        """What could not be written may be written now."""
        failed, self._failed = self._failed, []
        for draft in failed:
            self._bind_end(draft)

    def _say_incomplete(self) -> None:
        if self._troubles.incomplete:
            self._writer.incomplete(self._now(), self._troubles.told[0], self._troubles.exchanges)

    def _rename_journal(self) -> None:
        """Another file has the tape's name: the journal does not belong to that."""
        old, path = self._opened.path, free_name(self._opened.path, first=2)
        put_in_place(self._journal.path, journal_path(path))
        self._troubles.warn(f"{old} is another file now; what was recorded is on {path}")
        self._opened.path = path

    def _finish(self, told: Mapping[str, object]) -> None:
        """The header's lists are known at the end only."""
        self._opened.file.check_in_place()
        header = self._opened.header
        kinds = sorted({*header.redacted, *self._redactor.kinds})
        final = header.model_copy(update={"redacted": kinds, **told})
        try:
            if final != header:
                old, new = document_text(header_document(header)), document_text(header_document(final))
                self._opened.file.replace_start(len(old), new)
        finally:
            self._opened.file.close()
