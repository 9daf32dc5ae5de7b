"""Records answers of real models during a replay under the debugger, on a new tape in the same directory."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from wiretape.adapters.inprocess.exchange_recorder import ExchangeRecorder, SafeRecorder
from wiretape.adapters.rerun.fork_tape import free_name
from wiretape.adapters.settings import Settings, redactor_of
from wiretape.errors import TapeError, UsageError
from wiretape.matching.values import LiveRequest
from wiretape.tape.recording.recorder import Recorder


class LiveTape:
    """A tape that is created with its first answer. `path`: its path; `kept`: the number of answers.

    `incomplete`: True if data is missing; set by `close`.
    """

    def __init__(
        self, played: Path, settings: Settings | None = None, on_trouble: Callable[[str], None] = print
    ) -> None:
        self.path = free_name(played, "live")
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
