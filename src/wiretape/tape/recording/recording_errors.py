"""Errors while recording: each kind is reported once, and every error is counted."""

from __future__ import annotations

import contextlib
import errno
import threading
from collections.abc import Callable
from pathlib import Path

_NEXT_STEP = {
    errno.ENOSPC: "free some space and record again",
    errno.EDQUOT: "free some space and record again",
    errno.EACCES: "make it writable and record again",
    errno.EPERM: "make it writable and record again",
    errno.EROFS: "record to another place",
}


class RecordingErrors:
    """Two threads add to it."""

    def __init__(self, path: Path, on_trouble: Callable[[str], None] | None) -> None:
        self._path = path
        self._on_trouble = on_trouble
        self._lock = threading.Lock()
        self._kinds: dict[str, str] = {}
        self.exchanges: set[int] = set()
        self.warnings: list[str] = []  # the tape is complete, but the user should know

    @property
    def told(self) -> tuple[str, ...]:
        return tuple(self._kinds.values())

    @property
    def incomplete(self) -> bool:
        return bool(self._kinds)

    def add(self, error: Exception, exchange: int | None) -> None:
        """Note a failure; the first of its kind is told."""
        kind, text = self._described(error)
        with self._lock:
            if exchange is not None:
                self.exchanges.add(exchange)
            new = kind not in self._kinds
            if new:
                self._kinds[kind] = text
        if new:
            self._tell(text)

    def warn(self, text: str) -> None:
        """Tell something that leaves the tape complete."""
        self.warnings.append(text)
        self._tell(text)

    def listener(self, error: Exception) -> None:
        """Warn once that a listener of the recorder has failed: the tape has everything."""
        text = f"{self._path}: a call was recorded and could not be shown: {type(error).__name__}: {error}"
        if text not in self.warnings:
            self.warn(text)

    def _tell(self, text: str) -> None:
        if self._on_trouble is not None:
            with contextlib.suppress(Exception):
                self._on_trouble(text)

    def _described(self, error: Exception) -> tuple[str, str]:
        if isinstance(error, OSError) and error.errno is not None:
            step = _NEXT_STEP.get(error.errno, "record again")
            return f"os-{error.errno}", f"{self._path}: recording is incomplete: {error.strerror}; {step}"
        name = type(error).__name__
        return name, f"{self._path}: recording is incomplete: {name}: {error}; please report this"
