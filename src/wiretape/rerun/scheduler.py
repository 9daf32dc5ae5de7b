"""The scheduler without the agent's program: from each answer and the tools' results it builds the next request.

Sans-IO: `next()` gives a request to send, `answered()` takes what came. Played against its own tape it proves that the
format implies the run, call by call; sent to a live model it shows where the runs part. What no format implies (the
user's words, reminders, another prompt) is taken from the tape. Hooks may change a tool's result or a body on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from heapq import heapify, heappop, heapreplace

from wiretape.compare.canonical import canonical
from wiretape.compare.difference import Difference, Tier
from wiretape.compare.mask import Masker
from wiretape.compare.tool_results import RecordedToolResult
from wiretape.model.call import ToolCall, ToolResult
from wiretape.model.http import Ended, Exchange, JsonBody, Response
from wiretape.model.jsonvalue import JsonObject
from wiretape.model.run import Run
from wiretape.model.wording import clip
from wiretape.rerun.growth import Grown, Growth, with_given
from wiretape.rerun.parting import Parting
from wiretape.rerun.plan import Grounds, Take, client_calls, plan
from wiretape.rerun.tasks import Task, task_of, with_task
from wiretape.rerun.threads import Thread, Waiting
from wiretape.rerun.tools import Tools
from wiretape.rerun.values import NOTHING_ANSWERS, BodyHook, Outcome, Row, Send, Stopped, ToolHook
from wiretape.runs.run import build_run
from wiretape.runs.words import answer_text
from wiretape.wire.base import Memo
from wiretape.wire.next_request import Grower, Since, named
from wiretape.wire.registry import Registry, decode, default_registry

_ASIDE = "beside the loop"
MOST_NEW = 40  # calls that a thread may make after the runs have parted, before somebody should look


class Rerun:
    """Plays a tape's run. `live`: the answers come from elsewhere, so they and all that follows may be others."""

    def __init__(
        self,
        exchanges: Sequence[Exchange],
        *,
        live: bool = False,
        mask: Sequence[str] = (),
        registry: Registry | None = None,
        tools: ToolHook | None = None,
        change: BodyHook | None = None,
        told: Sequence[RecordedToolResult] = (),
    ) -> None:
        """`told`: results of tools that the wire does not show, and that go before those it does."""
        self._registry = registry or default_registry()
        self.run: Run = build_run(decode(exchanges, self._registry))
        self.takes = plan(self.run, exchanges, self._registry)
        self.rows: list[Row] = []
        self.stops: list[Stopped] = []
        self._live = live
        self._masker = Masker(mask)
        self._memo = Memo()
        self._change = change
        self._threads: dict[int, Thread] = {}
        self._asked: dict[int, tuple[ToolCall, ...]] = {}  # recorded call -> what our answer asked for in its place
        self._tools = Tools(self.run, self.takes, self._masker, told, tools)
        self._parting = Parting(self._masker)
        self._seen: set[bytes] = set()  # differences that were told
        self._waiting: Waiting | None = None
        for take in self._played(self.takes):
            self._threads.setdefault(_lane(take), Thread([])).takes.append(take)
        # By the number of each thread's next call; one that has gone on since is put right when it comes up.
        self._going = [(thread.takes[0].number, place, thread) for place, thread in enumerate(self._threads.values())]
        heapify(self._going)
        self._answered: Thread | None = None  # the thread whose request was answered last

    # -- what a driver calls ------------------------------------------------------------------------------------------

    def next(self) -> Send | None:
        """The next request; None when the run is over."""
        assert self._waiting is None, "answer the request first"
        while (thread := self._due()) is not None:
            send = self._advance(thread)
            if send is not None:
                return send
        return None

    def answered(self, response: Response, ended: Ended = Ended.COMPLETE) -> Row:
        """What came for the request that `next` gave."""
        assert self._waiting is not None, "no request is waiting for an answer"
        send, row, take, thread = self._waiting
        self._waiting, self._answered = None, thread
        exchange = Exchange(0, 0, send.request, response, ended, 0)
        if take.form is not None:
            thread.call = replace(take.form.decode(exchange, self._memo), number=send.number or 0)
        thread.reply = take.grounds.grower.answer(response) if take.grounds is not None else {}
        row = self._told_answer(row, thread, take, send)
        self.rows.append(row)
        return row

    def recorded(self, send: Send) -> Response | None:
        """What the tape has as an answer to a request."""
        take = self._by_number.get(send.number or 0)
        return take.response if take is not None else None

    def take_of(self, send: Send) -> Take:
        """The recorded call that a request stands for: the last one before it where it is new."""
        assert self._waiting is not None, "the request was answered"
        assert self._waiting.send is send, "another request is waiting"
        return self._waiting.take

    @property
    def parted(self) -> bool:
        """Whether the run went another way than the recorded one anywhere."""
        return bool(self.stops) or any(
            row.parts or row.outcome == "new" or (row.outcome == "differs" and not self._live) for row in self.rows
        )

    # -- which thread is next -----------------------------------------------------------------------------------------

    def _played(self, takes: Sequence[Take]) -> list[Take]:
        """The calls that this run makes. Live, a failed attempt and what stands beside the loop are left out."""
        if not self._live:
            return list(takes)
        retried = {take.step.cause.call for take in takes if take.step.cause.kind == "retry"}
        kept = []
        for take in takes:
            if take.step.cause.kind == "side_call" or take.call.kind != "inference":
                self.rows.append(self._row(take, "not sent", note=take.step.cause.detail or "a side call"))
            elif not (take.failed and take.number in retried):
                kept.append(take)
        return kept

    def _due(self) -> Thread | None:
        """A thread that went its own way finishes its turn first; else the order is that of the tape."""
        last = self._answered  # no other thread can have parted since
        if last is not None and last.parted and not last.stopped and client_calls(last.call):
            return last
        while self._going:
            number, place, thread = self._going[0]
            if thread.next is None or thread.stopped:
                heappop(self._going)
            elif thread.next.number != number:
                heapreplace(self._going, (thread.next.number, place, thread))
            else:
                return thread
        return None

    @cached_property
    def _tasked(self) -> dict[int, int]:
        """The first thread of each agent whose task the wire shows."""
        found: dict[int, int] = {}
        for take in self.takes:
            if take.step.cause.kind == "subagent" and task_of(take, self.run, self._by_number) is not None:
                found.setdefault(take.step.agent, take.step.thread)
        return found

    @cached_property
    def _by_number(self) -> dict[int, Take]:
        return {take.number: take for take in self.takes}

    # -- building requests --------------------------------------------------------------------------------------------

    def _advance(self, thread: Thread) -> Send | None:
        take = thread.next
        if thread.parted:
            if client_calls(thread.call):
                return self._on_our_own(thread)
            take = self._next_turn(thread)
        if take is None:
            return None
        thread.at += 1
        before = thread.before
        return self._first(thread, take) if before is None else self._goes_on(thread, take, before)

    def _first(self, thread: Thread, take: Take) -> Send | None:
        """A thread's first request is its program's; a subagent's task comes from what its parent asked for."""
        ground = take.grounds
        if ground is None:
            return self._as_recorded(thread, take, take.why_not)
        if take.step.cause.kind == "side_call":
            return self._as_recorded(thread, take, _ASIDE)
        task = task_of(take, self.run, self._by_number)
        if task is None:
            return self._as_recorded(thread, take, self._how_it_begins(take))
        body = ground.body
        if self._live:
            asked = self._ours(task)
            if asked is None:
                self._unreached(thread, "the tool call that starts it was not made")
                return None
            body = with_task(ground, task, asked)
        note = f"its task is from {task.use.call.name} of call {task.use.call_number}"
        same = canonical(body) == canonical(ground.body)
        row = self._row(take, "equal" if same else "differs", note=note)
        return self._ready(thread, take, row, body)

    def _how_it_begins(self, take: Take) -> str:
        origin = next((one.from_call for one in self.run.threads if one.number == take.step.thread), None)
        if origin is not None:
            return f"its program went another way on from call {origin}"
        return "the first request of its thread"

    def _ours(self, task: Task) -> ToolCall | None:
        """What our parent asked for in the place of the tool call that started a subagent."""
        asked = self._asked.get(task.use.call_number, ())
        at = task.position
        return asked[at] if at < len(asked) and asked[at].name == task.use.call.name else None

    def _as_recorded(self, thread: Thread, take: Take, note: str) -> Send | None:
        body = take.grounds.body if take.grounds is not None else None
        return self._ready(thread, take, self._row(take, "given", note=note), body)

    def _goes_on(self, thread: Thread, take: Take, before: Take) -> Send | None:
        ground, base = take.grounds, before.grounds
        if ground is None or base is None:
            return self._as_recorded(thread, take, take.why_not or before.why_not)
        if ground.form is not base.form:
            return self._as_recorded(thread, take, "it speaks another format than the call before it")
        if _is_aside(take):
            return self._as_recorded(thread, take, _ASIDE)
        growth = Growth(ground.form, ground.grower, self._masker, self._memo)
        if not self._live:
            grown = self._on_tape(before, take, ground, base, thread.reply, growth)
            row = self._row(take, "differs" if grown.differences else "equal", grown=grown)
            return self._ready(thread, take, row, ground.body)
        reply = base.grower.answer(before.response) if before.response is not None else {}
        recorded = self._on_tape(before, take, ground, base, reply, growth)
        results = self._results(thread)
        if results is None:
            return None
        body = ground.grower.grow(thread.body, Since(thread.reply, results, like=ground.body))
        body = with_given(body, ground, recorded)
        seen = self._new_differences(growth.compare(body, ground.body, take.request).differences)
        row = self._row(take, "differs" if seen else "equal", grown=replace(recorded, differences=seen))
        return self._ready(thread, take, row, body)

    def _on_tape(
        self, before: Take, take: Take, ground: Grounds, base: Grounds, reply: JsonObject, growth: Growth
    ) -> Grown:
        """The recorded request beside what the recorded one before it becomes with this answer."""
        results = self._tools.recorded(before, take)
        made = [ground.grower.grow(base.body, Since(reply, results, like=ground.body))]
        if before.failed or before.cut or take.step.cause.kind == "retry":
            made.append(base.body)  # a program may go on as if nothing had come
        compared = [growth.compare(body, ground.body, take.request) for body in made]
        return min(compared, key=lambda grown: (len(grown.differences), len(grown.given)))

    # -- after the runs have parted ------------------------------------------------------------------------------------

    def _on_our_own(self, thread: Thread) -> Send | None:
        """The model asks for tools that the recorded run did not ask for here."""
        before = thread.before
        if before is None or before.grounds is None:
            return None
        thread.new += 1
        if thread.new > MOST_NEW:
            self._stop(thread, f"it made {MOST_NEW} calls that the recorded run did not")
            return None
        results = self._results(thread)
        if results is None:
            return None
        grower = before.grounds.grower
        body = grower.grow(thread.body, Since(thread.reply, results, like=self._habits(thread, grower)))
        row = replace(self._row(before, "new"), number=None)
        return self._ready(thread, before, row, body, new=True)

    def _habits(self, thread: Thread, grower: Grower) -> JsonObject | None:
        """A recorded request that shows what its client hands back, if one has more of a history than ours."""
        ours = len(named(thread.body, grower.history(thread.body)))
        bodies = (take.grounds.body for take in thread.takes if take.grounds is not None)
        return next((body for body in bodies if len(named(body, grower.history(body))) > ours), None)

    def _next_turn(self, thread: Thread) -> Take | None:
        """The next recorded request that has words of the user's: there the run goes on. What lies before is passed."""
        while (take := thread.next) is not None:
            if take.step.cause.kind == "turn_start":
                thread.parted, thread.new = False, 0
                thread.before = thread.takes[thread.at - 1]
                return take
            self.rows.append(self._row(take, "not reached"))
            thread.at += 1
        return None

    def _unreached(self, thread: Thread, why: str) -> None:
        thread.at -= 1
        while (take := thread.next) is not None:
            self.rows.append(self._row(take, "not reached", note=why))
            thread.at += 1
        thread.stopped = True

    def _stop(self, thread: Thread, why: str) -> None:
        number = thread.before.number if thread.before is not None else None
        self.stops.append(Stopped(thread.takes[0].step.thread, number, why))
        thread.stopped = True
        self._tools.cut_off.add(thread.takes[0].step.agent)
        while (take := thread.next) is not None:
            self.rows.append(self._row(take, "not reached"))
            thread.at += 1

    def _results(self, thread: Thread) -> list[ToolResult] | None:
        """What the tools say that our last answer asked for; None (and the thread stops) where one is not known."""
        found: list[ToolResult] = []
        before = thread.before if not thread.parted else None
        for position, call in enumerate(client_calls(thread.call)):
            result = self._tools.answer(call, before, position)
            if result is None:
                self._stop(thread, f"{NOTHING_ANSWERS} {call.name}({clip(call.arguments, 80)})")
                return None
            found.append(result)
        return found

    # -- rows ---------------------------------------------------------------------------------------------------------

    def _ready(self, thread: Thread, take: Take, row: Row, body: JsonObject | None, new: bool = False) -> Send | None:
        """A request to send. Without an answer on the tape, and live without a body, there is nothing to ask for."""
        thread.before = take
        thread.call, thread.reply = None, {}
        if body is None or (not self._live and take.response is None):
            self.rows.append(row)
            return None
        if self._change is not None:
            body = self._change(None if new else take.number, body)
        thread.body = body
        request = replace(take.request, body=JsonBody(body))
        send = Send(None if new else take.number, take.step.thread, request, body)
        self._waiting = Waiting(send, row, take, thread)
        return send

    def _row(self, take: Take, outcome: Outcome, note: str = "", grown: Grown | None = None) -> Row:
        names = {agent.number: agent.name for agent in self.run.agents}
        return Row(
            number=take.number,
            thread=take.step.thread,
            agent=names.get(take.step.agent, "root"),
            format=take.call.format,
            outcome=outcome,
            note=note,
            tier=grown.tier if grown is not None else Tier.EXACT,
            differences=grown.differences if grown is not None else (),
            given=grown.given if grown is not None else (),
        )

    def _new_differences(self, found: Sequence[Difference]) -> tuple[Difference, ...]:
        """Those that no earlier row told: what differs once stands in every later history."""
        kept = []
        for apart in found:
            key = canonical([repr(apart.recorded), repr(apart.live)])
            if key not in self._seen:
                self._seen.add(key)
                kept.append(apart)
        return tuple(kept)

    def _told_answer(self, row: Row, thread: Thread, take: Take, send: Send) -> Row:
        call = thread.call
        assert call is not None
        asks = client_calls(call)
        text = (answer_text(call.response.messages) or "") if call.response is not None else ""
        if send.number is not None:
            self._asked[send.number] = asks
        if not asks and text:
            self._tools.final[take.step.agent] = text
        error = call.response.error if call.response is not None else None
        row = replace(row, asks=asks, said=text if error is None else f"{error.status} {error.message}")
        if not self._live or send.number is None:
            return row
        if error is not None:
            self._stop(thread, f"the model answered {error.status}: {error.message}")
            return replace(row, parts="the live answer is an error")
        parts = self._parting(take, asks, self._tasked.keys())
        thread.parted = bool(parts)
        return replace(row, parts=parts)


def _lane(take: Take) -> int:
    """What a call goes on from: its thread, or nothing if it stands beside one."""
    return -take.number if take.step.cause.kind == "side_call" else take.step.thread


def _is_aside(take: Take) -> bool:
    """Whether a call stands in a thread without going on from the one before it."""
    kind, request = take.step.cause.kind, take.call.request
    goes_on = take.step.new_from or request.held or request.previous_response_id is not None
    return kind == "side_call" or (kind != "retry" and not goes_on)
