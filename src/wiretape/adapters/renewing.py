"""A tape on its way to being renewed: what of it still answers, and what must be asked live. Opens nothing itself.

Stands behind `wiretape record --update` and behind a test that runs with `--wiretape-mode=new`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager

from wiretape.model.http import Exchange
from wiretape.replay.session import ReplaySession
from wiretape.replay.values import Answer, Injected, LiveRequest
from wiretape.tape.splice import Entry, Fresh, Kept


class Renewing:
    """A session whose misses are called live. `lock`: what guards the session, if others ask it, too."""

    def __init__(self, session: ReplaySession, lock: AbstractContextManager[object] | None = None) -> None:
        self.session = session
        self._lock = lock if lock is not None else threading.RLock()
        self._order: list[tuple[bool, int]] = []  # (kept, number) as the run went

    def answer(self, request: LiveRequest) -> Answer | Injected | None:
        """The recorded answer; None: there is none, and the request is to be called live."""
        with self._lock:
            outcome = self.session.answer(request)
            if isinstance(outcome, Answer) and not outcome.repeated:
                self._order.append((True, outcome.reference.exchange))
        return outcome if isinstance(outcome, Answer | Injected) else None

    def called(self, number: int) -> None:
        """A live call began, which the recorder gave this number."""
        with self._lock:
            self._order.append((False, number))

    @property
    def kept(self) -> list[int]:
        """The exchanges of the old tape that answered, in that order."""
        return [number for kept, number in self._order if kept]

    def order(self, fresh: Mapping[int, Exchange]) -> list[Entry]:
        """How the run went, for the new tape; `fresh` are the recorded live calls by their numbers.

        Names that the program made anew stand on the new tape as they stand in what was kept.
        """
        with self._lock:
            back = self.session.back_exchange
            entries: list[Entry] = []
            for kept, number in self._order:
                if kept:
                    entries.append(Kept(number))
                elif number in fresh:
                    entries.append(Fresh(back(fresh[number])))
            return entries
