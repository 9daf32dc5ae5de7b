"""Prints a replay on stderr: a line for each call while it runs, and a summary at the end."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final

from wiretape.adapters.output import typed
from wiretape.matching.values import Answer, Injected, Miss

if TYPE_CHECKING:
    from rich.text import Text

    from wiretape.app.replay import ReplayResult
    from wiretape.matching.session import ReplaySession
    from wiretape.matching.values import Outcome

_APART: Final = 0.005  # seconds: outcomes that follow one another faster are printed by the thread
_PAUSE: Final = 0.05  # seconds between the thread's turns while requests arrive
_TURN: Final = 0.001  # seconds of one turn


class LiveLines:
    """Prints a line for each outcome that is passed to `show`. All lines are printed when the `with` block ends.

    To decode and print a call takes as long as to answer it. A line is printed at once if the last outcome was a while
    ago, as between the calls of an agent. Under load, a thread prints the lines: it takes little time while requests
    arrive, and catches up when they pause.
    """

    def __init__(self, session: ReplaySession, verbose: bool = False) -> None:
        from wiretape.views.terminal import make_console

        self._session = session
        self._verbose = verbose  # print outcomes that are neither calls nor misses, too
        self._console = make_console(stderr=True)
        self._width = None if self._console.is_terminal else self._console.width  # a terminal may be resized
        self._waiting: deque[Outcome] = deque()
        self._printing = threading.Lock()  # held while some are taken and printed
        self._shown = 0
        self._last = 0.0
        self._wake = threading.Event()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="wiretape-lines", daemon=True)

    def __enter__(self) -> LiveLines:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._wake.set()
        self._thread.join()

    def show(self, outcome: Outcome) -> None:
        """Print an outcome, now or later. Called on one thread only."""
        now = time.monotonic()
        alone, self._last = now - self._last >= _APART, now
        self._shown += 1
        if alone and not self._waiting and self._printing.acquire(blocking=False):
            try:
                self._print([outcome])
            finally:
                self._printing.release()
            return
        self._waiting.append(outcome)
        if not self._wake.is_set():  # setting it again costs as much as a tenth of an answer
            self._wake.set()

    def _follow(self) -> None:
        _load_views()
        while not self._over.is_set():
            self._wake.wait()
            self._wake.clear()
            while self._waiting and not self._over.is_set():
                shown = self._shown
                self._over.wait(_PAUSE)
                while self._print_some() and self._shown == shown:
                    pass
        while self._print_some():
            pass

    def _print_some(self) -> bool:
        """Print waiting outcomes for one turn. Return whether there were any."""
        with self._printing:
            some = bool(self._waiting)
            self._print(self._turn())
            return some

    def _turn(self) -> Iterator[Outcome]:
        until = time.monotonic() + _TURN
        while self._waiting and time.monotonic() < until:
            yield self._waiting.popleft()

    def _print(self, outcomes: Iterable[Outcome]) -> None:
        from wiretape.views.terminal import print_lines

        lines = [line for outcome in outcomes if (line := self._line_or_error(outcome)) is not None]
        with suppress(OSError, ValueError):  # stderr is closed: the program still gets its answers
            print_lines(self._console, lines)

    def _line_or_error(self, outcome: Outcome) -> Text | None:
        from rich.text import Text

        from wiretape.views.printable import one_line

        try:
            return self._line(outcome)
        except Exception as error:  # the answer is sent anyway, and so are later lines
            return Text(one_line(f"a line could not be shown: {type(error).__name__}: {error}"))

    def _line(self, outcome: Outcome) -> Text | None:
        from wiretape.views.call_line import call_line
        from wiretape.views.replay.summary import outcome_line, tier_mark

        call = self._session.call_of(outcome) if isinstance(outcome, Answer) else None
        if call is not None and isinstance(outcome, Answer):
            mark = tier_mark(outcome)
            line = call_line(call, self._width or self._console.width, beside=len(mark))
            if mark:
                line.append(mark, "yellow")
            return line
        return outcome_line(outcome) if self._verbose or isinstance(outcome, Injected | Miss) else None


def _load_views() -> None:
    """Import the views while the program starts, so that its first call need not wait for them."""
    import wiretape.views.call_line
    import wiretape.views.replay.summary  # noqa: F401


def print_summary(result: ReplayResult, argv: Sequence[str]) -> None:
    """Print what matched, drifted and missed; and what to check if nothing was played."""
    from wiretape.app.replay import nothing_played
    from wiretape.views.replay.summary import Unreached, replay_view
    from wiretape.views.terminal import make_console

    console, report = make_console(stderr=True), result.report
    console.print(replay_view(report), crop=False)
    if report.played or report.missed or report.injected:
        return
    if result.code:
        text = f"{Path(argv[0]).name} exited with {result.code} before any call reached wiretape"
        console.print(text, style="bold yellow", soft_wrap=True)
    else:
        failed = bool(argv) and nothing_played(report)
        console.print(Unreached(report, typed(argv), failed, result.sealed), crop=False)
