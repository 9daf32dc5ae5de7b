"""A line for each call while a replay runs. Answers go first: under load the lines follow behind, and none is lost."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Final

from wiretape.matching.values import Answer, Injected, Miss

if TYPE_CHECKING:
    from rich.text import Text

    from wiretape.matching.session import ReplaySession
    from wiretape.matching.values import Outcome

_APART: Final = 0.005  # seconds: what comes closer together than this is told by the thread behind
_PAUSE: Final = 0.05  # between its turns while answers are being given,
_TURN: Final = 0.001  # and how long one of these is


class LiveLines:
    """`with LiveLines(session) as lines:`, and `lines.show` for each outcome. At the end all of them are printed.

    To decode a call and to say it takes as long as to answer it. A line is printed at once where there is time for it,
    as there is between the calls of an agent; else by a thread that takes little while answers are being given, and
    catches up as soon as nobody asks.
    """

    def __init__(self, session: ReplaySession, verbose: bool = False) -> None:
        from wiretape.views.terminal import make_console

        self._session = session
        self._verbose = verbose  # tell what is neither call nor miss, too
        self._console = make_console(stderr=True)
        self._width = None if self._console.is_terminal else self._console.width  # a terminal may be resized
        self._waiting: deque[Outcome] = deque()
        self._printing = threading.Lock()  # held while some are taken and printed
        self._told = 0
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
        """Told from one thread."""
        now = time.monotonic()
        alone, self._last = now - self._last >= _APART, now
        self._told += 1
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
                told = self._told
                self._over.wait(_PAUSE)
                while self._print_some() and self._told == told:
                    pass
        while self._print_some():
            pass

    def _print_some(self) -> bool:
        """What is waiting, as far as one turn takes; whether there was anything."""
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

        lines = [line for outcome in outcomes if (line := self._line_or_why(outcome)) is not None]
        with suppress(OSError, ValueError):  # nobody reads stderr any more: the program still gets its answers
            print_lines(self._console, lines)

    def _line_or_why(self, outcome: Outcome) -> Text | None:
        from rich.text import Text

        from wiretape.views.printable import one_line

        try:
            return self._line(outcome)
        except Exception as error:  # the answer goes out all the same, and the lines after this one
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
    """While the program starts: else its first call waits for them."""
    import wiretape.views.call_line
    import wiretape.views.replay.summary  # noqa: F401
