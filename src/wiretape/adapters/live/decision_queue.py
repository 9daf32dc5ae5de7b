"""Connects calls that wait on an event loop with the user interface that decides what happens to them.

One lock guards the debugger. Event loops never wait for it: their work runs on a separate thread. The user interface
takes the lock for each command, and releases it while it waits.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from contextlib import suppress
from typing import Literal, TypeVar

from wiretape.debug.live.pending_calls import AT_NEXT_CALL, Continue, Decision, OutputLine, Release
from wiretape.debug.live.program import LiveProgram
from wiretape.debug.live.stepping import reply_after_wait
from wiretape.debug.replies import CommandReply, Edit
from wiretape.debug.session import Debugger
from wiretape.errors import WiretapeError

T = TypeVar("T")
LOOK_S = 0.2  # between two checks whether the client of a held call is still connected
_TICK_S = 0.2  # the longest wait for a lock: on some systems Ctrl-C does not interrupt it


class ClientLeft(Exception):
    """The client of a held call closed its connection: no decision is needed."""


class DecisionQueue:
    """Guards the debugger with one lock, and carries decisions to held calls. `on_change` runs after every change."""

    def __init__(self, debugger: Debugger) -> None:
        self.debugger = debugger
        self.lock = threading.RLock()
        self.on_change: Callable[[], None] = lambda: None
        self.waiting = False  # the user interface waits in `wait`, which returns held calls
        self._unseen: list[OutputLine] = []
        self._changed = threading.Condition(self.lock)
        self._engine = ThreadPoolExecutor(1, "wiretape-debugger")

    @property
    def live(self) -> LiveProgram:
        assert self.debugger.live is not None
        return self.debugger.live

    def __enter__(self) -> DecisionQueue:
        return self

    def __exit__(self, *_: object) -> None:
        self._engine.shutdown(wait=True)

    # -- for event loops -------------------------------------------------------------------------------------------

    async def run(self, work: Callable[[], T]) -> T:
        """Work with the state of the debugger, without blocking this event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._engine, self.run_now, work)

    async def decision(
        self, hold: Callable[[Release], bool], has_left: Callable[[], bool] | None = None
    ) -> Decision | None:
        """Wait for the decision about a call; None if the call is not held.

        `has_left`: True after the client closed its connection, for servers that get no event. Raises ClientLeft then.
        """
        decided: Future[Decision] = Future()

        def release(decision: Decision) -> None:
            with suppress(InvalidStateError):  # the client left in the meantime
                decided.set_result(decision)

        if not await self.run(lambda: hold(release)):
            return None
        deciding = asyncio.wrap_future(decided)
        if has_left is None:
            return await deciding
        while not (await asyncio.wait({deciding}, timeout=LOOK_S))[0]:
            if has_left():
                deciding.cancel()
                raise ClientLeft
        return deciding.result()

    def run_now(self, work: Callable[[], T]) -> T:
        """As `run`, from a thread."""
        with self.lock:
            try:
                return work()
            finally:
                self._changed.notify_all()
                self.on_change()

    def run_soon(self, work: Callable[[], object]) -> None:
        """As `run`, without waiting for the end."""
        with suppress(RuntimeError):  # the debugger has ended
            self._engine.submit(self.run_now, work)

    # -- for the user interface ------------------------------------------------------------------------------------

    def execute(self, line: str) -> CommandReply:
        with self.lock:
            return self.debugger.execute(line)

    def finish_edit(self, edit: Edit, text: str) -> CommandReply:
        """Apply an edit. The editor was open without the lock."""
        with self.lock:
            try:
                return edit.done(text)
            except WiretapeError as error:
                return CommandReply(error=str(error))

    def wait(self, meanwhile: Callable[[], None] = lambda: None) -> CommandReply:
        """Wait until a call is held, or the program has ended. KeyboardInterrupt ends only the wait."""
        self.waiting = True
        try:
            while True:
                with self.lock:
                    reply = reply_after_wait(self.debugger, self.live)
                    if reply is None:
                        self._changed.wait(_TICK_S)
                meanwhile()
                if reply is not None:
                    return reply
        finally:
            self.waiting = False

    def interrupt(self) -> None:
        """Hold the next call."""
        with self.lock:
            self.live.stepping = AT_NEXT_CALL

    def release_all(self) -> None:
        """Release all held calls, and hold no others."""
        with self.lock:
            self.live.released = True
            for one in tuple(self.live.pending):
                self.live.release(one, Continue(one.answer if one.edited else None))
            self.live.start_program()

    def wait_for_end(self, meanwhile: Callable[[], None] = lambda: None) -> int:
        while True:
            with self.lock:
                if self.live.exit_code is None:
                    self._changed.wait(_TICK_S)
                code = self.live.exit_code
            meanwhile()
            if code is not None:
                return code

    # -- output of the program -------------------------------------------------------------------------------------

    def add_output(self, stream: Literal["out", "err"], text: str) -> None:
        def keep() -> None:
            line = OutputLine(self.live.last_answered, stream, text)
            self.live.output.append(line)
            self._unseen.append(line)

        self.run_now(keep)

    def new_output(self) -> list[OutputLine]:
        """The output lines since the last call."""
        with self.lock:
            found, self._unseen = self._unseen, []
            return found
