"""Holds the calls of a program that is replayed under the debugger, and carries out the decisions about them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import orjson

from wiretape.adapters.live.decision_queue import DecisionQueue
from wiretape.adapters.live.exchanges import LiveExchanges, answered, patience, words
from wiretape.adapters.live.model_calls import LiveTape, call_model
from wiretape.compare.difference import Tier
from wiretape.debug.live.pending_calls import Accept, Action, Continue, Decision, Delay, Drop, Inject, Rewrite, SendLive
from wiretape.errors import UsageError
from wiretape.matching.faults.apply import IN_DEBUGGER, Everywhere, Fault, error_response
from wiretape.matching.session import ReplaySession
from wiretape.matching.values import Answer, Injected, LiveRequest, Miss, Outcome, Reference, Stray
from wiretape.model.faults import ErrorStatus
from wiretape.model.http import Ended, Exchange, Headers, Response

_ACTIONS: frozenset[Action] = frozenset({"live", "request", "inject", "delay", "drop"})
_WITH_ANSWER: frozenset[Action] = frozenset({"serve", "answer", "live", "inject", "delay", "drop"})
_OF_SOCKETS: frozenset[Action] = frozenset({"serve", "delay"})


class ReplayHolding:
    """An `Interpose`: holds outcomes of the session if the debugger wants it. `live_tape`: keeps live answers."""

    def __init__(self, queue: DecisionQueue, session: ReplaySession, live_tape: LiveTape | None = None) -> None:
        self.queue = queue
        self.session = session
        self.live_tape = live_tape
        self.exchanges = LiveExchanges(session.output)
        self._numbers = count(1)

    async def __call__(self, request: LiveRequest, outcome: Outcome) -> Outcome:
        if isinstance(outcome, Stray):
            return outcome
        call = _Call(self, next(self._numbers), request, outcome)
        try:
            if isinstance(outcome, Answer) and outcome.exchange.messages:
                await call.hold_message(outcome)
                return outcome
            return await call.hold_request()
        except BaseException:
            live = self.queue.live
            self.queue.run_soon(lambda: live.client_left(call.number))
            raise


class _Call:
    """One request of the program."""

    def __init__(self, holding: ReplayHolding, number: int, request: LiveRequest, outcome: Outcome) -> None:
        self._queue, self._live, self._session = holding.queue, holding.queue.live, holding.session
        self._exchanges, self._live_tape = holding.exchanges, holding.live_tape
        self.number, self._request, self._outcome = number, request, outcome
        self._opened: Exchange | None = None

    async def hold_request(self) -> Outcome:
        await self._queue.run(self._begin)
        await self._before()
        await self._queue.run(self._set_answer)
        await self._after()
        await self._queue.run(lambda: self._live.settled(self.number))
        return self._outcome

    async def hold_message(self, outcome: Answer) -> None:
        """Hold the answer to a WebSocket message. It can be delayed, but not changed."""
        made = self._session.call_of(outcome)
        if made is None:
            return
        opened = self._exchanges.opened(self.number, self._request)
        sent = replace(made, exchange=self.number, at=opened.at, response=None, ended=None, ended_at=None)

        def begin() -> None:
            self._live.request_started(opened, call=sent)
            self._live.set_actions(self.number, _OF_SOCKETS, outcome.exchange, drift=_drift(outcome))

        def known() -> None:
            now = self._exchanges.now
            answer = Response(200, Headers(), now)
            answered_call = replace(sent, response=made.response, ended=made.ended, ended_at=now)
            self._live.answer_known(
                replace(opened, response=answer, ended=Ended.COMPLETE, ended_at=now), call=answered_call
            )

        await self._queue.run(begin)
        await self._wait()
        await self._queue.run(known)
        await self._wait()
        await self._queue.run(lambda: self._live.settled(self.number))

    async def _wait(self) -> None:
        decision = await self._decision()
        if isinstance(decision, Delay):
            await asyncio.sleep(decision.seconds)

    @property
    def _what(self) -> str:
        """The request line."""
        return f"{self._request.method} {self._session.output.url(self._request.url)}"

    # -- before the answer ----------------------------------------------------------------------------------------

    def _begin(self) -> None:
        self._opened = self._exchanges.opened(self.number, self._request)
        self._live.request_started(self._opened, patience(self._request.headers))
        self._set_actions()

    def _set_actions(self) -> None:
        outcome, miss = self._outcome, ""
        actions = set(_ACTIONS)
        if isinstance(outcome, Miss):
            miss = outcome.message
            actions |= {"accept"} if outcome.nearest is not None and outcome.nearest.call is not None else set()
            recorded = None
        else:
            recorded = self._with_answer()
            actions |= {"serve", "answer"}
        self._live.set_actions(self.number, frozenset(actions), recorded, miss, _drift(outcome))

    def _with_answer(self) -> Exchange:
        assert self._opened is not None
        return answered(self._opened, self._outcome, self._exchanges.now)

    async def _decision(self) -> Decision | None:
        """The decision about this call; None if the debugger does not hold it."""
        return await self._queue.decision(lambda release: self._live.hold_if_wanted(self.number, release))

    async def _next_decision(self, update: Callable[[], None], reason: str) -> Decision:
        """Hold the call again, for a reason that the user sees."""

        def hold(release: Callable[[Decision], None]) -> bool:
            update()
            self._live.hold(self.number, release, reason=reason)
            return True

        decision = await self._queue.decision(hold)
        assert decision is not None, "the call is held"
        return decision

    async def _before(self) -> None:
        decision = await self._decision()
        while decision is not None:
            problem = ""
            try:
                if not await self._carry_out(decision):
                    return
            except UsageError as error:
                problem = str(error)
            decision = await self._next_decision(self._set_actions, problem)

    async def _carry_out(self, decision: Decision) -> bool:
        """Carry out a decision. Return True if the call must be held again."""
        match decision:
            case Continue(answer=answer):
                self._replace_answer(answer)
            case Delay(seconds=seconds, then=then):
                await asyncio.sleep(seconds)
                self._replace_answer(then.answer)
            case Accept():
                assert isinstance(self._outcome, Miss)
                accepted = self._session.accept(self._request, self._outcome)
                if accepted is None:
                    raise UsageError("no recorded call is similar to this request")
                self._outcome = accepted
            case SendLive():
                await self._call_model()
            case Rewrite(body=body):
                await self._rewrite(body)
                return True
            case Inject():
                self._inject(decision)
            case Drop():
                self._drop()
        return False

    def _replace_answer(self, answer: Exchange | None) -> None:
        """Replace the answer of the session."""
        if answer is not None and isinstance(self._outcome, Answer | Injected):
            self._outcome = replace(self._outcome, exchange=answer)

    async def _call_model(self) -> None:
        assert self._opened is not None
        response = await call_model(self._request, self._exchanges.now, self._live_tape)
        live = replace(self._opened, response=response, ended=Ended.COMPLETE, ended_at=self._exchanges.now)
        what = self._what
        self._session.withhold(
            self._outcome, Stray(self._outcome.number, what, "called live, in the debugger"), again=False
        )
        self._outcome = Answer(self._outcome.number, _reference(self._outcome, what), live, Tier.EXACT)

    async def _rewrite(self, body: Any) -> None:
        what = self._what
        kept = [pair for pair in self._request.headers.pairs() if pair[0].lower() != "content-encoding"]
        self._request = replace(
            self._request, headers=Headers(kept), body=orjson.dumps(self._session.output.restored(body))
        )
        self._session.withhold(self._outcome, Stray(self._outcome.number, what, "changed, in the debugger"))
        self._outcome = self._session.answer(self._request)

        def change() -> None:
            before = self._opened
            assert before is not None
            self._opened = replace(self._exchanges.opened(self.number, self._request), at=before.at)
            self._live.request_changed(self._opened)

        await self._queue.run(change)

    def _inject(self, injected: Inject) -> None:
        fault = Fault(injected.what, injected.effect, Everywhere())
        before, reference = self._outcome, _reference(self._outcome, self._what)
        exchange = self._with_answer() if isinstance(before, Answer | Injected) else self._bare()
        if not fault.breaks and isinstance(before, Answer):
            self._outcome = replace(before, faults=(*before.faults, fault))
            return
        if isinstance(fault.effect, ErrorStatus):
            exchange = replace(self._bare(), response=refusal(self._session, self._request, fault, self._exchanges.now))
        self._outcome = Injected(before.number, reference, exchange, fault)
        self._session.withhold(before, self._outcome)

    def _bare(self) -> Exchange:
        assert self._opened is not None
        return replace(self._opened, ended=Ended.COMPLETE, ended_at=self._exchanges.now)

    def _drop(self) -> None:
        gone = replace(self._bare(), ended=Ended.UPSTREAM_CLOSED)
        before, what = self._outcome, self._what
        self._session.withhold(before, Stray(before.number, what, "dropped, in the debugger"))
        self._outcome = Answer(before.number, _reference(before, what), gone, Tier.EXACT)

    # -- with the answer ----------------------------------------------------------------------------------------------

    def _set_answer(self) -> None:
        self._live.answer_known(self._with_answer(), _WITH_ANSWER, _drift(self._outcome))

    async def _after(self) -> None:
        decision = await self._decision()
        while decision is not None:
            reason = "this is the answer of the real model"
            try:
                await self._carry_out(decision)
                if isinstance(decision, Continue | Delay | Drop | Inject):
                    break
            except UsageError as error:
                reason = str(error)
            decision = await self._next_decision(self._set_answer, reason)
        await self._queue.run(self._set_answer)


def _drift(outcome: Outcome) -> Sequence[str]:
    return [words(difference) for difference in outcome.differences] if isinstance(outcome, Answer) else ()


def _reference(outcome: Outcome, what: str) -> Reference:
    if isinstance(outcome, Answer | Injected):
        return outcome.reference
    nearest = outcome.nearest if isinstance(outcome, Miss) else None
    return nearest or Reference("", 0, None, what)


def refusal(session: ReplaySession, request: LiveRequest, fault: Fault, at: int) -> Response:
    assert isinstance(fault.effect, ErrorStatus)
    return error_response(session.format_of(request), fault.effect, IN_DEBUGGER, at)
