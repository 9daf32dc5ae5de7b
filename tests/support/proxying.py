"""A recording proxy in the test's own process, with a recorder that only stores its events."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wiretape.model.http import Ended

PATIENCE_S = 20  # a busy machine is not a failure


class Spy:
    """Stands where the recorder stands. `failing` names the methods that raise."""

    def __init__(self, failing: tuple[str, ...] = ()) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.ends: dict[int, Ended] = {}
        self.times: list[float] = []
        self._failing = failing
        self._next = 0
        self._changed = threading.Condition()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *values: self._note(name, *values)

    def _note(self, name: str, *values: Any) -> int | None:
        with self._changed:
            if name in self._failing:
                raise RuntimeError(f"disk full in {name}")
            self.calls.append((name, *values))
            self.times.append(time.perf_counter())
            if name == "end":
                self.ends[values[0]] = values[1]
            self._changed.notify_all()
            if name == "begin":
                self._next += 1
                return self._next
        return None

    def wait_for_end(self, x: int = 1) -> Ended:
        with self._changed:
            assert self._changed.wait_for(lambda: x in self.ends, PATIENCE_S), self.calls
            return self.ends[x]

    def wait_for(self, name: str, count: int = 1) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.named(name)) >= count, PATIENCE_S), self.calls

    def named(self, name: str) -> list[tuple[Any, ...]]:
        return [call[1:] for call in self.calls if call[0] == name]

    def data(self, name: str, x: int = 1) -> bytes:
        return b"".join(data for number, data in self.named(name) if number == x)


@contextmanager
def recording(
    spy: Any, state: Path, environ: Mapping[str, str] | None = None, **options: Any
) -> Iterator[tuple[Any, list[str]]]:
    """(the running recording, the troubles it told)."""
    from wiretape.app.recording_server import RecordingServer

    troubles: list[str] = []
    with RecordingServer(spy, {"XDG_STATE_HOME": str(state), **(environ or {})}, troubles.append, **options) as running:
        yield running, troubles
