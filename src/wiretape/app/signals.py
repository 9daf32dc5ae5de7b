"""Handles the signals that end a recording or a replay."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_STOPPING = ("SIGINT", "SIGTERM", "SIGHUP")


@contextmanager
def stop_signal() -> Iterator[threading.Event]:
    """Yield an event that the first SIGINT, SIGTERM or SIGHUP sets."""
    stop = threading.Event()
    with _handling(stop.set):
        yield stop


@contextmanager
def held_signals() -> Iterator[None]:
    """Ignore these signals while a tape is completed, which takes a moment."""
    with _handling(lambda: None):
        yield


@contextmanager
def _handling(handle: Callable[[], None]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield
        return
    numbers = [getattr(signal, name) for name in _STOPPING if hasattr(signal, name)]
    previous = {number: signal.signal(number, lambda number, frame: handle()) for number in numbers}
    try:
        yield
    finally:
        for number, before in previous.items():
            signal.signal(number, before)
