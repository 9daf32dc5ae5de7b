"""Requests of threads and tasks that outlive their test: they get an error that names the test.

Without this they would reach a real model, or take the recorded answers of the next test.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Final

from wiretape._version import __version__
from wiretape.adapters.inprocess import active_context
from wiretape.adapters.inprocess.active_context import ActiveContext
from wiretape.adapters.inprocess.patches.patching import apply_patches, remove_patches
from wiretape.adapters.launch.child import proxy_variables
from wiretape.adapters.pytest.thread_context import ORIGINS, Origin
from wiretape.adapters.routing.base_urls import base_url_variables
from wiretape.matching.faults.apply import FAULT_CODE, provider_error
from wiretape.matching.playback import Playback, playback
from wiretape.matching.session import ReplaySession
from wiretape.matching.sockets.playing import SocketPlay
from wiretape.matching.values import LiveRequest, Miss
from wiretape.model.http import Headers
from wiretape.tape.format.documents import VERSION, Header
from wiretape.tape.reading.reader import Tape

_CLOSED_PORT: Final = 9  # the port of the "discard" service, which no system runs any more


class LateContext(ActiveContext):
    """The context of code whose test has ended: every model call is a miss. `late`: counts the messages."""

    is_open = True

    def __init__(self, origin: Origin, late: dict[str, int]) -> None:
        super().__init__()
        self.name = f"the tape of {origin.test}"
        self._origin = origin
        self._late = late
        header = Header(wiretape=VERSION, started=datetime.now(UTC), recorder=f"wiretape {__version__}")
        self._session = ReplaySession([Tape(None, header, ())])  # distinguishes model calls from telemetry

    @property
    def replays(self) -> bool:
        return True

    def passes(self, host: str, port: int, count: bool) -> bool:
        host = host.strip("[]").lower()
        names = (host, f"{host}:{port}")
        return any(fnmatchcase(name, glob.lower()) for glob in self._origin.allow_hosts for name in names)

    def answer(self, request: LiveRequest) -> Playback:
        with self.lock:
            outcome = self._session.answer(request)
            if isinstance(outcome, Miss):
                message = self.message(outcome.what)
                headers, body = provider_error(self._session.format_of(request), outcome.status, message, FAULT_CODE)
                kept = Headers([*headers.pairs(), ("x-should-retry", "false")])
                outcome = replace(outcome, headers=kept, body=body, message=message)
        return playback(outcome)

    def open_socket(self, request: LiveRequest) -> SocketPlay | Playback:
        return self.answer(request)

    def refusal(self, host: str, names: frozenset[str], port: int | None) -> str | None:
        if any(self.passes(name, port or 0, count=False) for name in names):
            return None
        return self.message(host if port is None else f"{host}:{port}")

    def child_variables(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Route late child processes to a closed port."""
        return {**base_url_variables(environ, _CLOSED_PORT), **proxy_variables(_CLOSED_PORT)}

    def message(self, what: str) -> str:
        text = (
            f"{what} was sent after the end of {self._origin.test}\n"
            f"  by {_sender()}, which that test started; its tape is closed, and nothing is called live\n"
            "  wait for it in the test; start code that serves several tests in a fixture of a wider scope"
        )
        self._late[text] = self._late.get(text, 0) + 1
        return text


class LateThreads:
    """The threads and tasks of all tests in this process. `late`: messages about late requests, and how often."""

    def __init__(self) -> None:
        self.late: dict[str, int] = {}
        self._contexts: dict[Origin, LateContext] = {}
        self._still_running: list[Origin] = []  # tests whose threads or tasks were running when they ended

    def begin(self, origin: Origin) -> None:
        active_context.late_context = self.here
        ORIGINS.begin(origin)

    def end(self, origin: Origin) -> None:
        if ORIGINS.end(origin):
            self._still_running.append(origin)
            apply_patches()

    def here(self) -> LateContext | None:
        """The context of a late call; None if the test of the caller is unknown, or still runs."""
        origin = ORIGINS.here()
        if origin is None or not origin.is_over:
            return None
        if origin not in self._contexts:
            self._contexts[origin] = LateContext(origin, self.late)
        return self._contexts[origin]

    def close(self) -> dict[str, int]:
        """Remove all patches at the end of the run. Return the messages."""
        late, self.late = self.late, {}
        for _ in self._still_running:
            remove_patches()
        self._still_running.clear()
        self._contexts.clear()
        active_context.late_context = None
        ORIGINS.unwatch()
        return late


def _sender() -> str:
    try:
        task = asyncio.current_task()
    except RuntimeError:  # this thread has no event loop
        task = None
    if task is not None:
        return f"the task {task.get_name()!r}"
    return f"the thread {threading.current_thread().name!r}"


LATE_THREADS: Final = LateThreads()
