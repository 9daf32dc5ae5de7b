"""What code gets that outlives its test and asks a model then: an error that names the test, and nothing else.

It would be asked live otherwise, or be given what the next test was to get.
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
from wiretape.matching.playback import Playback, playback
from wiretape.matching.session import ReplaySession
from wiretape.matching.sockets.playing import SocketPlay
from wiretape.matching.values import LiveRequest, Miss
from wiretape.model.http import Headers
from wiretape.tape.format.documents import VERSION, Header
from wiretape.tape.reading.reader import Tape

_NOWHERE: Final = 9  # a port on which nothing listens: "discard", of which no system has a server any more


class LateContext(ActiveContext):
    """Stands where the tape of a test stood that is over. `told`: every call that came after it."""

    is_open = True

    def __init__(self, origin: Origin, told: dict[str, int]) -> None:
        super().__init__()
        self.name = f"the tape of {origin.test}"
        self._origin = origin
        self._told = told
        header = Header(wiretape=VERSION, started=datetime.now(UTC), recorder=f"wiretape {__version__}")
        self._session = ReplaySession([Tape(None, header, ())])  # tells model calls from telemetry

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
                headers, body = self._session.refusal(request, outcome.status, message)
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
        """A child process that is started after the end finds nothing where it is sent."""
        return {**base_url_variables(environ, _NOWHERE), **proxy_variables(_NOWHERE)}

    def message(self, what: str) -> str:
        said = (
            f"{what} was asked after the end of {self._origin.test}\n"
            f"  by {_who()}, which that test started; its tape is closed, and nothing is asked live\n"
            "  wait for it in the test; what serves several tests is started in a fixture of a wider scope"
        )
        self._told[said] = self._told.get(said, 0) + 1
        return said


class LateThreads:
    """All tests of this process. `told`: what was asked after the end of its test, and how often."""

    def __init__(self) -> None:
        self.told: dict[str, int] = {}
        self._outlived: dict[Origin, LateContext] = {}
        self._at_work: list[Origin] = []  # tests of which something was left when they ended

    def begin(self, origin: Origin) -> None:
        active_context.outlived = self.here
        ORIGINS.begin(origin)

    def end(self, origin: Origin) -> None:
        if ORIGINS.end(origin):
            self._at_work.append(origin)
            apply_patches()

    def here(self) -> LateContext | None:
        """What a call gets that is made here and now; None: its test is not over, or there is none."""
        origin = ORIGINS.here()
        if origin is None or not origin.is_over:
            return None
        if origin not in self._outlived:
            self._outlived[origin] = LateContext(origin, self.told)
        return self._outlived[origin]

    def close(self) -> dict[str, int]:
        """The run is over: what was told, and everything is as it was before."""
        told, self.told = self.told, {}
        for _ in self._at_work:
            remove_patches()
        self._at_work.clear()
        self._outlived.clear()
        active_context.outlived = None
        ORIGINS.unwatch()
        return told


def _who() -> str:
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no event loop runs in this thread
        task = None
    if task is not None:
        return f"the task {task.get_name()!r}"
    return f"the thread {threading.current_thread().name!r}"


LATE_THREADS: Final = LateThreads()
