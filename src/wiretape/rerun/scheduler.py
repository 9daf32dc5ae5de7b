"""The scheduler of a rerun: builds each next request from the last answer and the tool results.

Sans-IO: `next()` returns a request to send, `answered()` takes its response. Against its own tape, a rerun shows for
each call whether the wire format implies it; against a live model, it shows where the runs diverge. Parts that no
format implies (the user's text, reminders, another prompt) come from the tape. Hooks may change a result or a body.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple

from wiretape.compare.canonical import canonical
from wiretape.compare.difference import Difference, Tier
from wiretape.compare.mask import Masker
from wiretape.compare.normalize import loose
from wiretape.model.call import ModelCall, ToolCall, ToolResult
from wiretape.model.http import Ended, Exchange, JsonBody, Response
from wiretape.model.jsonvalue import JsonObject
from wiretape.model.jsonwalk import parsed
from wiretape.model.run import Run
from wiretape.model.wording import clip
from wiretape.rerun.comparison import RequestComparer, RequestComparison, with_program_choices
from wiretape.rerun.next_request.base import RequestBuilder, TurnDelta, value_at
from wiretape.rerun.plan import RecordedCall, RequestBasis, client_calls, plan
from wiretape.rerun.tools import SubagentTask, ToolResultSource, task_of, with_task
from wiretape.rerun.values import NO_RESULT, BodyHook, CallOutcome, Outcome, PlannedRequest, StoppedThread, ToolHook
from wiretape.runs.run import build_run
from wiretape.runs.user_text import answer_text
from wiretape.wire.base import Memo
from wiretape.wire.lenient import items
from wiretape.wire.registry import Registry, decode, default_registry

_OUTSIDE_LOOP = "outside the loop"
MAX_NEW_CALLS = 40  # calls that a thread may make after the runs diverged


@dataclass(slots=True, eq=False)
class ThreadState:
    """One conversation of a rerun."""

    calls: list[RecordedCall]
    at: int = 0  # index of the next recorded call
    body: JsonObject = field(default_factory=dict)  # the last sent body
    before: RecordedCall | None = None  # the recorded counterpart of the last sent call
    answer: JsonObject = field(default_factory=dict)  # the last answer
    call: ModelCall | None = None  # the last answer, decoded
    diverged: bool = False  # whether the last answer diverged from the recorded one
    stopped: bool = False
    new_calls: int = 0

    @property
    def next(self) -> RecordedCall | None:
        return self.calls[self.at] if self.at < len(self.calls) else None


class PendingRequest(NamedTuple):
    """A request without a response yet, and the outcome so far."""

    request: PlannedRequest
    outcome: CallOutcome
    recorded: RecordedCall
    thread: ThreadState


class Rerun:
    """Reruns a tape. With `live`, answers come from a model, so they and later requests may differ."""

    def __init__(
        self,
        exchanges: Sequence[Exchange],
        *,
        live: bool = False,
        mask: Sequence[str] = (),
        registry: Registry | None = None,
        tools: ToolHook | None = None,
        change: BodyHook | None = None,
    ) -> None:
        self._registry = registry or default_registry()
        self.run: Run = build_run(decode(exchanges, self._registry))
        self.calls = plan(self.run, exchanges, self._registry)
        self.outcomes: list[CallOutcome] = []
        self.stopped: list[StoppedThread] = []
        self._live = live
        self._masker = Masker(mask)
        self._memo = Memo()
        self._change = change
        self._tool_calls: dict[int, tuple[ToolCall, ...]] = {}  # recorded call -> this run's tool calls in its place
        self._tools = ToolResultSource(self.run, self.calls, self._masker, tools)
        self._reported: set[bytes] = set()  # differences in earlier outcomes
        self._pending: PendingRequest | None = None
        threads: dict[int, ThreadState] = {}
        for call in self._played(self.calls):
            threads.setdefault(_thread_key(call), ThreadState([])).calls.append(call)
        # Threads by the number of their next call. Stale numbers are corrected when they reach the top.
        self._queue = [(thread.calls[0].number, position, thread) for position, thread in enumerate(threads.values())]
        heapify(self._queue)
        self._last_answered: ThreadState | None = None

    # -- public ---------------------------------------------------------------------------------------------------

    def next(self) -> PlannedRequest | None:
        """Return the next request, or None if the run is over."""
        assert self._pending is None, "answer the request first"
        while (thread := self._next_thread()) is not None:
            request = self._advance(thread)
            if request is not None:
                return request
        return None

    def answered(self, response: Response, ended: Ended = Ended.COMPLETE) -> CallOutcome:
        """Take the response to the request that `next` returned."""
        assert self._pending is not None, "no request is pending"
        request, outcome, recorded, thread = self._pending
        self._pending, self._last_answered = None, thread
        exchange = Exchange(0, 0, request.request, response, ended, 0)
        if recorded.form is not None:
            thread.call = replace(recorded.form.decode(exchange, self._memo), number=request.number or 0)
        thread.answer = recorded.basis.builder.read_answer(response) if recorded.basis is not None else {}
        outcome = self._with_answer(outcome, thread, recorded, request)
        self.outcomes.append(outcome)
        return outcome

    def recorded(self, request: PlannedRequest) -> Response | None:
        """Return the recorded response to a request."""
        call = self._by_number.get(request.number or 0)
        return call.response if call is not None else None

    def recorded_call(self, request: PlannedRequest) -> RecordedCall:
        """Return the recorded counterpart of the pending request; for a new one, the last recorded call before it."""
        assert self._pending is not None, "the request was answered"
        assert self._pending.request is request, "another request is pending"
        return self._pending.recorded

    @property
    def diverged(self) -> bool:
        """Whether the run diverged from the recorded one at any call."""
        return bool(self.stopped) or any(
            one.parts or one.outcome == "new" or (one.outcome == "differs" and not self._live) for one in self.outcomes
        )

    # -- choosing the thread --------------------------------------------------------------------------------------

    def _played(self, calls: Sequence[RecordedCall]) -> list[RecordedCall]:
        """Return the calls that this run makes. A live run omits failed attempts and calls outside the loop."""
        if not self._live:
            return list(calls)
        retried = {call.step.cause.call for call in calls if call.step.cause.kind == "retry"}
        kept = []
        for call in calls:
            if call.step.cause.kind == "side_call" or call.call.kind != "inference":
                self.outcomes.append(self._outcome(call, "not sent", note=call.step.cause.detail or "a side call"))
            elif not (call.failed and call.number in retried):
                kept.append(call)
        return kept

    def _next_thread(self) -> ThreadState | None:
        """Return the next thread in the order of the tape; a diverged thread first finishes its turn."""
        last = self._last_answered  # the only thread that can be in the middle of a diverged turn
        if last is not None and last.diverged and not last.stopped and client_calls(last.call):
            return last
        while self._queue:
            number, position, thread = self._queue[0]
            if thread.next is None or thread.stopped:
                heappop(self._queue)
            elif thread.next.number != number:
                heapreplace(self._queue, (thread.next.number, position, thread))
            else:
                return thread
        return None

    @cached_property
    def _agents_with_task(self) -> set[int]:
        """The agents whose task the wire shows."""
        return {call.step.agent for call in self.calls if task_of(call, self.run, self._by_number) is not None}

    @cached_property
    def _by_number(self) -> dict[int, RecordedCall]:
        return {call.number: call for call in self.calls}

    # -- building requests ----------------------------------------------------------------------------------------

    def _advance(self, thread: ThreadState) -> PlannedRequest | None:
        call = thread.next
        if thread.diverged:
            if client_calls(thread.call):
                return self._new_request(thread)
            call = self._next_turn(thread)
        if call is None:
            return None
        thread.at += 1
        before = thread.before
        return self._first_request(thread, call) if before is None else self._continue(thread, call, before)

    def _first_request(self, thread: ThreadState, call: RecordedCall) -> PlannedRequest | None:
        """Return a thread's first request: the recorded one, with a subagent's task from its parent's tool call."""
        basis = call.basis
        if basis is None:
            return self._as_recorded(thread, call, call.why_not)
        if call.step.cause.kind == "side_call":
            return self._as_recorded(thread, call, _OUTSIDE_LOOP)
        task = task_of(call, self.run, self._by_number)
        if task is None:
            return self._as_recorded(thread, call, self._origin(call))
        body = basis.body
        if self._live:
            tool_call = self._tool_call_of(task)
            if tool_call is None:
                self._skip(thread, "the model did not make the tool call that starts it")
                return None
            body = with_task(basis, task, tool_call)
        note = f"its task comes from {task.use.call.name} of call {task.use.call_number}"
        same = canonical(body) == canonical(basis.body)
        return self._send(thread, call, self._outcome(call, "equal" if same else "differs", note=note), body)

    def _origin(self, call: RecordedCall) -> str:
        origin = next((one.from_call for one in self.run.threads if one.number == call.step.thread), None)
        if origin is not None:
            return f"its program forked the conversation at call {origin}"
        return "the first request of its thread"

    def _tool_call_of(self, task: SubagentTask) -> ToolCall | None:
        """Return this run's counterpart of the tool call that started a subagent."""
        calls = self._tool_calls.get(task.use.call_number, ())
        same = task.position < len(calls) and calls[task.position].name == task.use.call.name
        return calls[task.position] if same else None

    def _as_recorded(self, thread: ThreadState, call: RecordedCall, note: str) -> PlannedRequest | None:
        body = call.basis.body if call.basis is not None else None
        return self._send(thread, call, self._outcome(call, "given", note=note), body)

    def _continue(self, thread: ThreadState, call: RecordedCall, before: RecordedCall) -> PlannedRequest | None:
        basis, base = call.basis, before.basis
        if basis is None or base is None:
            return self._as_recorded(thread, call, call.why_not or before.why_not)
        if basis.form is not base.form:
            return self._as_recorded(thread, call, "its wire format differs from that of the call before it")
        if _is_outside_loop(call):
            return self._as_recorded(thread, call, _OUTSIDE_LOOP)
        comparer = RequestComparer(basis.form, basis.builder, self._masker, self._memo)
        if not self._live:
            compared = self._compare_recorded(before, call, basis, base, thread.answer, comparer)
            outcome = self._outcome(call, "differs" if compared.differences else "equal", compared=compared)
            return self._send(thread, call, outcome, basis.body)
        answer = base.builder.read_answer(before.response) if before.response is not None else {}
        recorded = self._compare_recorded(before, call, basis, base, answer, comparer)
        results = self._results(thread)
        if results is None:
            return None
        body = basis.builder.next_body(thread.body, TurnDelta(thread.answer, results, style_sample=basis.body))
        body = with_program_choices(body, basis, recorded)
        new = self._new_differences(comparer.compare(body, basis.body, call.request).differences)
        compared = replace(recorded, differences=new)
        return self._send(thread, call, self._outcome(call, "differs" if new else "equal", compared=compared), body)

    def _compare_recorded(
        self,
        before: RecordedCall,
        call: RecordedCall,
        basis: RequestBasis,
        base: RequestBasis,
        answer: JsonObject,
        comparer: RequestComparer,
    ) -> RequestComparison:
        """Compare the recorded request with the one built from the recorded request before it and this answer."""
        results = self._tools.recorded(before, call)
        built = [basis.builder.next_body(base.body, TurnDelta(answer, results, style_sample=basis.body))]
        if before.failed or before.truncated or call.step.cause.kind == "retry":
            built.append(base.body)  # a program may send the same request again
        compared = [comparer.compare(body, basis.body, call.request) for body in built]
        return min(compared, key=lambda one: (len(one.differences), len(one.given)))

    # -- after the runs diverged ----------------------------------------------------------------------------------

    def _new_request(self, thread: ThreadState) -> PlannedRequest | None:
        """Return a request without a recorded counterpart: the model made other tool calls."""
        before = thread.before
        if before is None or before.basis is None:
            return None
        thread.new_calls += 1
        if thread.new_calls > MAX_NEW_CALLS:
            self._stop(thread, f"it made {MAX_NEW_CALLS} calls that the recorded run did not")
            return None
        results = self._results(thread)
        if results is None:
            return None
        builder = before.basis.builder
        delta = TurnDelta(thread.answer, results, style_sample=self._style_sample(thread, builder))
        body = builder.next_body(thread.body, delta)
        return self._send(thread, before, replace(self._outcome(before, "new"), number=None), body, new=True)

    def _style_sample(self, thread: ThreadState, builder: RequestBuilder) -> JsonObject | None:
        """Return a recorded request with a longer history than ours, which shows what its client sends back."""

        def length(body: JsonObject) -> int:
            return len(items(value_at(body, builder.history_path(body))))

        ours = length(thread.body)
        bodies = (call.basis.body for call in thread.calls if call.basis is not None)
        return next((body for body in bodies if length(body) > ours), None)

    def _next_turn(self, thread: ThreadState) -> RecordedCall | None:
        """Return the next recorded request that starts a turn; the runs continue together there."""
        while (call := thread.next) is not None:
            if call.step.cause.kind == "turn_start":
                thread.diverged, thread.new_calls = False, 0
                thread.before = thread.calls[thread.at - 1]
                return call
            self.outcomes.append(self._outcome(call, "not reached"))
            thread.at += 1
        return None

    def _skip(self, thread: ThreadState, why: str) -> None:
        """Skip the rest of a thread, its current call included."""
        thread.at -= 1
        self._leave_rest(thread, why)

    def _stop(self, thread: ThreadState, why: str) -> None:
        number = thread.before.number if thread.before is not None else None
        self.stopped.append(StoppedThread(thread.calls[0].step.thread, number, why))
        self._tools.stopped_agents.add(thread.calls[0].step.agent)
        self._leave_rest(thread)

    def _leave_rest(self, thread: ThreadState, why: str = "") -> None:
        thread.stopped = True
        while (call := thread.next) is not None:
            self.outcomes.append(self._outcome(call, "not reached", note=why))
            thread.at += 1

    def _results(self, thread: ThreadState) -> list[ToolResult] | None:
        """Return the results of the last answer's tool calls; stop the thread and return None if one is unknown."""
        found: list[ToolResult] = []
        before = thread.before if not thread.diverged else None
        for position, call in enumerate(client_calls(thread.call)):
            result = self._tools.result(call, before, position)
            if result is None:
                self._stop(thread, f"{NO_RESULT} {call.name}({clip(call.arguments, 80)})")
                return None
            found.append(result)
        return found

    def _divergence(self, recorded: RecordedCall, live: Sequence[ToolCall]) -> str:
        """Return how an answer with these tool calls diverges from the recorded one, or ""; texts may differ."""
        calls = client_calls(recorded.call)
        if bool(calls) != bool(live):
            return "the model answered instead of calling tools" if calls else "the model called tools, not answered"
        if [call.name for call in calls] != [call.name for call in live]:
            return "the model called other tools"
        # The task of a subagent may be worded differently.
        tasks = {use.call.id for use in recorded.uses if use.agent is not None and use.agent in self._agents_with_task}
        pairs = [(one, other) for one, other in zip(calls, live, strict=True) if one.id not in tasks]
        same = all(self._same_arguments(one, other) for one, other in pairs)
        return "" if same else "the model called tools with other arguments"

    def _same_arguments(self, one: ToolCall, other: ToolCall) -> bool:
        a, b = loose(parsed(one.arguments)), loose(parsed(other.arguments))
        return bool(a == b or self._masker.value(a) == self._masker.value(b))

    # -- outcomes -------------------------------------------------------------------------------------------------

    def _send(
        self, thread: ThreadState, call: RecordedCall, outcome: CallOutcome, body: JsonObject | None, new: bool = False
    ) -> PlannedRequest | None:
        """Return the request to send; None without a body, or without a recorded answer unless the run is live."""
        thread.before = call
        thread.call, thread.answer = None, {}
        if body is None or (not self._live and call.response is None):
            self.outcomes.append(outcome)
            return None
        if self._change is not None:
            body = self._change(None if new else call.number, body)
        thread.body = body
        request = replace(call.request, body=JsonBody(body))
        planned = PlannedRequest(None if new else call.number, call.step.thread, request, body)
        self._pending = PendingRequest(planned, outcome, call, thread)
        return planned

    def _outcome(
        self, call: RecordedCall, outcome: Outcome, note: str = "", compared: RequestComparison | None = None
    ) -> CallOutcome:
        names = {agent.number: agent.name for agent in self.run.agents}
        return CallOutcome(
            number=call.number,
            thread=call.step.thread,
            agent=names.get(call.step.agent, "root"),
            format=call.call.format,
            outcome=outcome,
            note=note,
            tier=compared.tier if compared is not None else Tier.EXACT,
            differences=compared.differences if compared is not None else (),
            given=compared.given if compared is not None else (),
        )

    def _new_differences(self, found: Sequence[Difference]) -> tuple[Difference, ...]:
        """Return the differences that no earlier outcome has: every later history repeats them."""
        new = []
        for difference in found:
            key = canonical([repr(difference.recorded), repr(difference.live)])
            if key not in self._reported:
                self._reported.add(key)
                new.append(difference)
        return tuple(new)

    def _with_answer(
        self, outcome: CallOutcome, thread: ThreadState, recorded: RecordedCall, request: PlannedRequest
    ) -> CallOutcome:
        call = thread.call
        assert call is not None
        asks = client_calls(call)
        text = (answer_text(call.response.messages) or "") if call.response is not None else ""
        if request.number is not None:
            self._tool_calls[request.number] = asks
        if not asks and text:
            self._tools.final_texts[recorded.step.agent] = text
        error = call.response.error if call.response is not None else None
        outcome = replace(outcome, asks=asks, said=text if error is None else f"{error.status} {error.message}")
        if not self._live or request.number is None:
            return outcome
        if error is not None:
            self._stop(thread, f"the model answered {error.status}: {error.message}")
            return replace(outcome, parts="the live answer is an error")
        divergence = self._divergence(recorded, asks)
        thread.diverged = bool(divergence)
        return replace(outcome, parts=divergence)


def _thread_key(call: RecordedCall) -> int:
    """Return the thread that a call continues; a side call continues none."""
    return -call.number if call.step.cause.kind == "side_call" else call.step.thread


def _is_outside_loop(recorded: RecordedCall) -> bool:
    """Return whether a call belongs to a thread but does not continue the call before it."""
    kind, request = recorded.step.cause.kind, recorded.call.request
    continues = recorded.step.new_from or request.held or request.previous_response_id is not None
    return kind == "side_call" or (kind != "retry" and not continues)
