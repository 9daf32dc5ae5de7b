"""Choose among equal recorded calls: the call of the thread that the live request continues.

Evidence, best first: the previous answer that the request names; the client's ids in the headers, which an earlier
request had, too; the ids of the tool calls whose results it has. A caller without an earlier answer gets a thread that
no other caller has. Without evidence, the earliest call is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from wiretape.matching.lookup.index import Probe
from wiretape.matching.recorded import RecordedExchange
from wiretape.model.call import CallRequest, ModelCall, ToolCall
from wiretape.model.http import Headers
from wiretape.model.run import Run
from wiretape.runs.caller_headers import identity
from wiretape.wire.base import Memo
from wiretape.wire.decoding import linking_headers

Caller: TypeAlias = tuple[str | None, str | None]
ThreadKey: TypeAlias = tuple[int, int]  # tape, number of the thread


def caller_of(headers: Headers) -> Caller | None:
    """The caller that the client's headers name; None if they name none."""
    linking = linking_headers(headers)
    if not linking:
        return None
    return identity(ModelCall(0, 0, "", CallRequest(None, ()), None, 0, None, None, headers=linking)).key


@dataclass(eq=False)
class TieBreak:
    """Remembers the last recorded call of each caller. `runs` is called only if threads matter."""

    recorded: Sequence[RecordedExchange]
    memo: Memo
    runs: Callable[[], Sequence[Run]]
    _last: dict[Caller, int] = field(default_factory=dict)  # the order of each caller's last call

    def note(self, recorded: RecordedExchange, probe: Probe) -> None:
        """Note that a recorded call was played for a live request."""
        who = caller_of(probe.request.headers) if probe.format is not None else None
        if who is not None:
            self._last[who] = recorded.order

    def choose(self, equal: Sequence[int], probe: Probe) -> int:
        """Choose among recorded calls that equal the live request, given earliest first."""
        call = probe.call(self.memo)
        if call is None:
            return equal[0]
        who = caller_of(probe.request.headers)
        if who is not None and len({caller_of(self.recorded[n].exchange.request.headers) for n in equal}) == 1:
            return equal[0]  # all of one agent: a retry or a repeated question
        before = self._before(call, who)
        if before is None and who is None:
            return equal[0]
        thread = self._threads.get(before) if before is not None else None
        own = next((n for n in equal if thread is not None and self._threads.get(n) == thread), None)
        if own is not None:
            return own
        taken = {self._threads.get(order) for other, order in self._last.items() if other != who}
        return next((n for n in equal if self._threads.get(n) not in taken), equal[0])

    def _before(self, call: CallRequest, who: Caller | None) -> int | None:
        """The recorded call whose answer the request continues."""
        if call.previous_response_id is not None:
            return self._responses.get(call.previous_response_id)
        if who is not None and who in self._last:
            return self._last[who]
        for message in reversed(call.messages):
            ids = [block.id for block in message.blocks if isinstance(block, ToolCall) and block.id]
            if ids:
                return next((self._tools[name] for name in ids if name in self._tools), None)
        return None

    @cached_property
    def _orders(self) -> dict[tuple[int, int], int]:
        return {(one.tape, one.exchange.number): one.order for one in self.recorded}

    @cached_property
    def _threads(self) -> dict[int, ThreadKey]:
        return {
            self._orders[tape, step.call.exchange]: (tape, step.thread)
            for tape, run in enumerate(self.runs())
            for step in run.steps
            if (tape, step.call.exchange) in self._orders
        }

    @cached_property
    def _responses(self) -> dict[str, int]:
        """Orders of recorded calls by the id of their answer."""
        return {
            step.call.response.id: self._orders[tape, step.call.exchange]
            for tape, run in enumerate(self.runs())
            for step in run.steps
            if step.call.response is not None
            and step.call.response.id
            and (tape, step.call.exchange) in self._orders
        }  # fmt: skip

    @cached_property
    def _tools(self) -> dict[str, int]:
        """Orders of recorded calls by the id of a tool call that only their answer has."""
        found: dict[str, int] = {}
        twice: set[str] = set()
        for tape, run in enumerate(self.runs()):
            for step in run.steps:
                order = self._orders.get((tape, step.call.exchange))
                for name in {call.id for call in step.call.tool_calls if call.id} if order is not None else ():
                    if name in found:
                        twice.add(name)
                    found[name] = order  # type: ignore[assignment]
        return {name: order for name, order in found.items() if name not in twice}
