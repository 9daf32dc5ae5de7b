"""A tape on its way to being renewed: what of it still answers, and what must be asked live. Opens nothing itself.

Stands behind `wiretape record --update` and behind a test that runs with `--wiretape-mode=new` or `update`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager
from urllib.parse import urlsplit

from wiretape.adapters.update.tool_within import asked_within
from wiretape.matching.report import ReplayReport
from wiretape.matching.session import ReplaySession
from wiretape.matching.values import Answer, Injected, LiveRequest, Miss
from wiretape.model.http import Ended, Exchange
from wiretape.model.jsonvalue import Json
from wiretape.tape.editing.splice import Entry, Fresh, Kept
from wiretape.wire.mcp.tool_exchange import ToolAnswer, answer_body

_LOST = (None, Ended.RECORDER_STOPPED)


class UpdateSession:
    """A session whose misses are called live. `lock`: what guards the session, if others ask it, too."""

    def __init__(self, session: ReplaySession, lock: AbstractContextManager[object] | None = None) -> None:
        self.session = session
        self._lock = lock if lock is not None else threading.RLock()
        self._order: list[tuple[bool, int]] = []  # (kept, number) as the run went
        self.called_live: list[Miss] = []  # why each request was not answered from the tape

    def answer(self, request: LiveRequest) -> Answer | Injected | None:
        """The recorded answer; None: there is none, and the request is to be called live.

        An answer that its recorder lost is none: to play how it broke off would keep that on the tape for ever.
        """
        with self._lock:
            outcome = self.session.answer(request)
            if isinstance(outcome, Answer) and outcome.exchange.ended in _LOST:
                what = f"{request.method} {urlsplit(request.url).path}"
                told = f"{outcome.reference} would, but its recorder lost the answer"
                missed = Miss(outcome.number, what, "not playable", told, outcome.reference)
                self.called_live.append(self.session.withhold(outcome, missed))
                return None
            if isinstance(outcome, Miss):
                self.called_live.append(outcome)
            if isinstance(outcome, Answer) and not outcome.repeated:
                self._order.append((True, outcome.reference.exchange))
        return outcome if isinstance(outcome, Answer | Injected) else None

    def tool(self, name: str, arguments: Json) -> Json | None:
        """What a wrapped tool came to, as MCP's result; None: the tape does not say, and the tool is to run."""
        answer = self.tool_answer(name, arguments)
        return answer_body(answer) if answer is not None else None

    def tool_answer(self, name: str, arguments: Json) -> ToolAnswer | None:
        """The same, as it is told in this process."""
        with self._lock:
            played = self.session.play_tool(name, arguments)
            if isinstance(played, Miss):
                self.called_live.append(played)
                return None
            if played.own is not None and not played.shown.repeated:
                self._order.append((True, played.shown.reference.exchange))
        return played.answer

    def note_live_call(self, number: int) -> None:
        """A live call began, which the recorder gave this number."""
        with self._lock:
            self._order.append((False, number))

    @property
    def kept(self) -> list[int]:
        """The exchanges of the old tape that answered, in that order; last, WebSockets that were played."""
        kept = [number for kept, number in self._order if kept]
        played = {one.answer.exchange for one in self.session.report().played}
        return [*kept, *sorted(played - set(kept))]

    def report(self) -> ReplayReport:
        """What happened; what a kept tool asked itself when it was recorded stays with it, and is not left over."""
        with self._lock:
            report, stays = self.session.report(), {*self.kept, *self.within_kept}
        left = tuple(one for one in report.left_over if one.exchange not in stays)
        return report.model_copy(update={"left_over": left})

    @property
    def drifted(self) -> bool:
        """Whether there is anything to write. Telemetry is another at every run: replay does not miss it, nor is it
        here."""
        report = self.report()
        return bool(self.session.misses or report.sockets or any(one.call is not None for one in report.left_over))

    @property
    def within_kept(self) -> list[int]:
        """Exchanges of the old tape that began while a kept tool was at work: what it asked itself, it did not ask now.

        One that a live request came near to was asked for, and is another now.
        """
        kept = set(self.kept)
        changed = {miss.nearest.exchange for miss in self.session.misses if miss.nearest is not None}
        exchanges = [exchange for tape in self.session.tapes for exchange in tape.exchanges]
        return [number for number in asked_within(exchanges, kept) if number not in kept | changed]

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
            noted = {number for kept, number in self._order if kept}
            # Last: a fresh call stands behind all that is named before it.
            return entries + [Kept(number) for number in (*self.kept, *self.within_kept) if number not in noted]
