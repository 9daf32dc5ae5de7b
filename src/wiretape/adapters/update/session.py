"""Decides for each request of an update whether the old tape answers it or it is called live. Opens no connection.

Used by `wiretape record --update` and by tests with `--wiretape-mode=new` or `update`.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from urllib.parse import urlsplit

from wiretape.matching.report import ReplayReport
from wiretape.matching.session import ReplaySession
from wiretape.matching.values import Answer, Injected, LiveRequest, Miss
from wiretape.model.http import Ended, Exchange
from wiretape.model.jsonvalue import Json
from wiretape.runs.run import build_run
from wiretape.tape.editing.splice import Entry, Fresh, Kept
from wiretape.wire.mcp.tool_exchange import ToolAnswer, answer_body, is_tool_exchange
from wiretape.wire.registry import decode

_LOST = (None, Ended.RECORDER_STOPPED)


class UpdateSession:
    """A replay session whose misses are called live. `lock`: the lock of the session, if other threads use it, too."""

    def __init__(self, session: ReplaySession, lock: AbstractContextManager[object] | None = None) -> None:
        self.session = session
        self._lock = lock if lock is not None else threading.RLock()
        self._order: list[tuple[bool, int]] = []  # (kept, exchange number), in the order of this run
        self.called_live: list[Miss] = []  # why each of these requests was not answered from the tape

    def answer(self, request: LiveRequest) -> Answer | Injected | None:
        """The recorded answer; None: call the request live.

        An answer whose recording is incomplete is ignored: it would stay broken on the new tape.
        """
        with self._lock:
            outcome = self.session.answer(request)
            if isinstance(outcome, Answer) and outcome.exchange.ended in _LOST:
                what = f"{request.method} {urlsplit(request.url).path}"
                why = f"{outcome.reference} would answer, but its recording is incomplete"
                missed = Miss(outcome.number, what, "not playable", why, outcome.reference)
                self.called_live.append(self.session.withhold(outcome, missed))
                return None
            if isinstance(outcome, Miss):
                self.called_live.append(outcome)
            if isinstance(outcome, Answer) and not outcome.repeated:
                self._order.append((True, outcome.reference.exchange))
        return outcome if isinstance(outcome, Answer | Injected) else None

    def tool(self, name: str, arguments: Json) -> Json | None:
        """The recorded result of a wrapped tool, as an MCP result; None: run the tool."""
        answer = self.tool_answer(name, arguments)
        return answer_body(answer) if answer is not None else None

    def tool_answer(self, name: str, arguments: Json) -> ToolAnswer | None:
        """The recorded result of a wrapped tool; None: run the tool."""
        with self._lock:
            played = self.session.play_tool(name, arguments)
            if isinstance(played, Miss):
                self.called_live.append(played)
                return None
            if played.own is not None and not played.shown.repeated:
                self._order.append((True, played.shown.reference.exchange))
        return played.answer

    def note_live_call(self, number: int) -> None:
        """A live call began with this exchange number."""
        with self._lock:
            self._order.append((False, number))

    @property
    def kept(self) -> list[int]:
        """The exchanges of the old tape that answered, in that order; played WebSockets come last."""
        kept = [number for kept, number in self._order if kept]
        played = {one.answer.exchange for one in self.session.report().played}
        return [*kept, *sorted(played - set(kept))]

    def report(self) -> ReplayReport:
        """The report of the session. Requests that a kept tool sent when it was recorded do not count as left over."""
        with self._lock:
            report, stays = self.session.report(), {*self.kept, *self.within_kept}
        left = tuple(one for one in report.left_over if one.exchange not in stays)
        return report.model_copy(update={"left_over": left})

    @property
    def drifted(self) -> bool:
        """True if the tape must be written. Telemetry does not count: it differs in every run."""
        report = self.report()
        return bool(self.session.misses or report.sockets or any(one.call is not None for one in report.left_over))

    @property
    def within_kept(self) -> list[int]:
        """Exchanges of the old tape that a kept tool sent itself while it ran: they stay, as the tool did not run now.

        An exchange that is the nearest one of a miss is excluded: the program did send it, changed.
        """
        kept = set(self.kept)
        changed = {miss.nearest.exchange for miss in self.session.misses if miss.nearest is not None}
        exchanges = [exchange for tape in self.session.tapes for exchange in tape.exchanges]
        return [number for number in sent_by_tools(exchanges, kept) if number not in kept | changed]

    def order(self, fresh: Mapping[int, Exchange]) -> list[Entry]:
        """The entries of the new tape in the order of this run. `fresh`: the recorded live calls by number.

        Ids that the program created in this run are replaced by those of the kept exchanges.
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
            # At the end: a fresh call must follow the exchanges that its request quotes.
            return entries + [Kept(number) for number in (*self.kept, *self.within_kept) if number not in noted]


def sent_by_tools(exchanges: Sequence[Exchange], kept: Collection[int]) -> list[int]:
    """The numbers of exchanges that the `kept` tool calls sent while they ran.

    A tape does not record the sender of a request. An exchange that began while a tool ran was sent by the tool, or by
    another task of the program: by another task if its thread also has calls that began while no tool ran.
    """
    tools = [one for one in exchanges if is_tool_exchange(one)]
    running = [tool for tool in tools if tool.number in kept]
    found = [one.number for one in exchanges if _began_during(one, running)]
    if not found:
        return []
    others = _in_threads_of_other_tasks(exchanges, tools)
    return [number for number in found if number not in others]


def _in_threads_of_other_tasks(exchanges: Sequence[Exchange], tools: Sequence[Exchange]) -> set[int]:
    during = {one.number for one in exchanges if _began_during(one, tools)}
    calls = decode(exchanges)
    exchange_of = {call.number: call.exchange for call in calls}
    of_threads = [{exchange_of[number] for number in thread.calls} for thread in build_run(calls).threads]
    return set().union(*(numbers for numbers in of_threads if not numbers <= during))


def _began_during(one: Exchange, tools: Sequence[Exchange]) -> bool:
    return any(
        one.number > tool.number and tool.at <= one.at < (tool.ended_at if tool.ended_at is not None else tool.at)
        for tool in tools
    )
