"""The answers that real models gave while a tape was played under the debugger: kept on a tape beside that one."""

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
    """Made with the first answer. `path`: where it is, or would be; `kept`: how many answers it has.

    `incomplete`: whether it lacks something; known when it is closed.
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

    def take(self, request: LiveRequest) -> ExchangeRecorder | None:
        """A request on its way to a model. Raises UsageError where the tape cannot be written: nothing was sent."""
        if self._safe_recorder is None:
            self._safe_recorder = SafeRecorder(self._open(), self._on_trouble)
        taken = self._safe_recorder.begin(request.method, request.url, request.headers.pairs())
        if taken is not None:
            taken.sent(request.body)
            taken.sent_all()
        return taken

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
                note=f"asked live in the debugger, while {Path(shown).as_posix()} was played",
                on_trouble=self._on_trouble,
            )
        except TapeError as error:
            raise UsageError(f"its answer could not be kept, so nothing was asked: {error}") from None
        return self._recorder
