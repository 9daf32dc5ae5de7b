"""The recording addon of the debugger: it holds a call before it is sent, or before its answer is.

It holds only calls that the debugger wants, and buffers answers only while a breakpoint could stop at one. If it fails,
the failure is reported and the call continues.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import orjson
from mitmproxy import http

from wiretape.adapters.http1 import send_playback
from wiretape.adapters.live.decision_queue import ClientLeft, DecisionQueue
from wiretape.adapters.live.exchanges import LiveExchanges, body_of, later, patience
from wiretape.adapters.mitm._compat import held_answers
from wiretape.adapters.mitm._compat.held_answers import HEAD_SENT, HELD, WAITS, has_left
from wiretape.adapters.mitm.addon import RecordingAddon, live_request, pairs_of
from wiretape.adapters.mitm.live.pending_sockets import PendingSockets
from wiretape.debug.live.pending_calls import Action, Continue, Decision, Delay, Drop, Inject, Release, Rewrite
from wiretape.errors import UsageError
from wiretape.matching.faults.apply import IN_DEBUGGER, error_response
from wiretape.model.faults import Effect, ErrorStatus, Reset
from wiretape.model.http import Body, Ended, Exchange, Headers, Response, body_bytes
from wiretape.tape.output_redactor import OutputRedactor
from wiretape.wire.registry import default_registry

_MAY_HOLD = "wiretape.may_hold"  # flow.metadata: the request may be held when it is complete
_BUFFERED = "wiretape.buffered"  # flow.metadata: the answer is buffered
_DROPPED = "wiretape.dropped"  # flow.metadata: how the exchange ended
_BEFORE: frozenset[Action] = frozenset({"live", "request", "inject", "delay", "drop"})
_AFTER: frozenset[Action] = frozenset({"serve", "answer", "inject", "delay", "drop"})
_POLL_S = 0.005
_POLLS = 400  # for exchanges that have ended to be on the tape


class HoldingAddon(RecordingAddon):
    """`recorded(exchange)` is to be called with each exchange that is on the tape, on any thread."""

    def __init__(self, *values: Any, queue: DecisionQueue, output: OutputRedactor | None = None, **named: Any) -> None:
        """`output`: redacts what the debugger shows."""
        super().__init__(*values, **named)
        held_answers.install()
        self._queue = queue
        self._output = output or OutputRedactor()
        self._exchanges = LiveExchanges(self._output)
        self._sockets = PendingSockets(queue, self._exchanges)
        self._deciding: dict[int, asyncio.Future[bool]] = {}  # of answers whose clients get comments
        self._offset = 0  # of the debugger's clock from the tape's, in milliseconds
        self._unwritten: set[int] = set()  # exchanges that have ended and are not on the tape yet

    def recorded(self, exchange: Exchange) -> None:
        self._unwritten.discard(exchange.number)
        if self._sockets.knows(exchange.number):
            self._sockets.ended(exchange)
            return
        live = self._queue.live

        def update() -> None:
            begun = live.exchanges.get(exchange.number)
            if begun is not None:
                self._offset = begun.at - exchange.at
            live.answer_known(later(exchange, self._offset))
            live.settled(exchange.number)

        self._queue.run_soon(update)

    # requests

    def requestheaders(self, flow: http.HTTPFlow) -> None:
        if flow.request.headers.get("upgrade", "").lower() == "websocket":
            super().requestheaders(flow)
        elif self._is_recorded(flow):
            flow.metadata[_MAY_HOLD] = True

    async def request(self, flow: http.HTTPFlow) -> None:
        if flow.metadata.pop(_MAY_HOLD, False) and not flow.error:
            x = self._begin(flow)
            if x is not None and not await self._guarded(self._before, flow, x):
                self._drop(flow, Ended.CLIENT_CLOSED)  # do not pay for an answer without a reader
        await super().request(flow)

    async def _before(self, flow: http.HTTPFlow, x: int) -> None:
        live = self._queue.live
        opened = await self._queue.run(lambda: self._open(flow, x))
        if live.may_hold:
            await self._all_written(x)
        decision = await self._held(flow, lambda release: live.hold_if_wanted(x, release))
        while decision is not None:
            problem = ""
            try:
                if not await self._carry_out(flow, decision, opened):
                    return
                opened = await self._queue.run(partial(self._open_anew, flow, opened))
            except UsageError as error:
                problem = str(error)
            decision = await self._held(flow, lambda release, why=problem: self._hold(x, release, why))  # type: ignore[misc]

    async def _held(self, flow: http.HTTPFlow, hold: Callable[[Release], bool]) -> Decision | None:
        return await self._queue.decision(hold, lambda: has_left(flow))

    def _open(self, flow: http.HTTPFlow, x: int) -> Exchange:
        request = live_request(flow.request)
        opened = self._exchanges.opened(x, request)
        self._queue.live.request_started(opened, patience(request.headers))
        self._queue.live.set_actions(x, _BEFORE)
        return opened

    def _open_anew(self, flow: http.HTTPFlow, before: Exchange) -> Exchange:
        opened = replace(self._exchanges.opened(before.number, live_request(flow.request)), at=before.at)
        self._queue.live.request_changed(opened)
        return opened

    async def _all_written(self, x: int) -> None:
        """Wait for exchanges that ended before this call: the call may continue one of them."""
        before = set(self._unwritten) - {x}
        for _ in range(_POLLS):
            if not before & self._unwritten:
                return
            await asyncio.sleep(_POLL_S)

    def _hold(self, x: int, release: Callable[[Decision], None], problem: str) -> bool:
        self._queue.live.hold(x, release, reason=problem)
        return True

    async def _carry_out(self, flow: http.HTTPFlow, decision: Decision, exchange: Exchange) -> bool:
        """Carry a decision out; return whether the call is held again."""
        match decision:
            case Continue(answer=answer):
                _replace_answer(flow, answer)
            case Delay(seconds=seconds, then=then):
                await asyncio.sleep(seconds)
                _replace_answer(flow, then.answer)
            case Rewrite(body=body):
                flow.request.content = orjson.dumps(self._output.restored(body))
                return True
            case Inject(effect=effect):
                if flow.metadata.get(HEAD_SENT):
                    raise UsageError("the client has received the head of this answer: inject is too late, use drop")
                self._inject(flow, effect, exchange)
            case Drop():
                self._drop(flow)
        return False

    def _inject(self, flow: http.HTTPFlow, effect: Effect, exchange: Exchange) -> None:
        if isinstance(effect, Reset):
            self._drop(flow)
            return
        assert isinstance(effect, ErrorStatus), "the command permits no other effect"
        form = default_registry().recognise_request(exchange.request)
        response = error_response(form, effect, IN_DEBUGGER, 0)
        made = {name.encode(): value.encode() for name, value in response.headers.pairs()}
        flow.response = http.Response.make(effect.status, body_bytes(response.body), http.Headers(list(made.items())))
        flow.metadata[_BUFFERED] = True

    def _drop(self, flow: http.HTTPFlow, ended: Ended = Ended.UPSTREAM_CLOSED) -> None:
        flow.metadata[_DROPPED] = ended
        if (x := self.number_of(flow)) is not None:  # what the program prints from now on comes after this call
            self._queue.live.answer_started(x)
        flow.kill()

    # responses

    def responseheaders(self, flow: http.HTTPFlow) -> None:
        if self.number_of(flow) is not None and self._queue.live.may_hold_answers and flow.response is not None:
            flow.metadata[_BUFFERED] = True
            flow.metadata[HELD] = flow.response.headers.get("content-type", "").startswith("text/event-stream")
            return
        if (x := self.number_of(flow)) is not None:
            self._queue.live.answer_started(x)
        super().responseheaders(flow)

    async def held_answer(self, flow: http.HTTPFlow) -> None:
        """Wait for the decision on an event stream, while its client gets comments."""
        x = self.number_of(flow)
        if x is None:
            return
        if x not in self._deciding:
            self._deciding[x] = asyncio.ensure_future(self._guarded(self._after, flow, x))
        await asyncio.wait({self._deciding[x]}, timeout=send_playback.KEEP_ALIVE_SECONDS)
        flow.metadata[WAITS] = not self._deciding[x].done()

    async def response(self, flow: http.HTTPFlow) -> None:  # type: ignore[override]
        x, gone = self.number_of(flow), False
        if x is not None and flow.metadata.pop(_BUFFERED, False) and flow.websocket is None:
            gone = await self._decided(flow, x)
            await self._record_held(flow, x, with_body=not gone)
            self._keep_on_route(flow)
        if gone or flow.metadata.get(_DROPPED):
            self._end(flow, Ended.CLIENT_CLOSED if gone else flow.metadata[_DROPPED])
        else:
            super().response(flow)

    async def _decided(self, flow: http.HTTPFlow, x: int) -> bool:
        """Wait for the decision on an answer; return whether the client has disconnected before it."""
        deciding = self._deciding.pop(x, None)
        if deciding is None:
            return not await self._guarded(self._after, flow, x)
        if not deciding.done():
            deciding.cancel()
            self._queue.run_soon(lambda: self._queue.live.client_left(x))
            return True
        return not deciding.result()

    async def websocket_message(self, flow: http.HTTPFlow) -> None:
        await super().websocket_message(flow)
        x = self.number_of(flow)
        if x is not None:
            await self._guarded(self._sockets.message, flow, x)

    async def _record_held(self, flow: http.HTTPFlow, x: int, with_body: bool) -> None:
        """Record what the program gets: the head, and the body if `with_body`."""
        response = flow.response
        if response is None or flow.metadata.get(_DROPPED):
            return
        self._safely(self._recorder.response, x, response.status_code, pairs_of(response.headers))
        if with_body and response.raw_content:
            await self._record(self._recorder.response_data, x, response.raw_content)

    async def _after(self, flow: http.HTTPFlow, x: int) -> None:
        live = self._queue.live
        exchange = await self._queue.run(lambda: self._answered(flow, x))
        decision = await self._held(flow, lambda release: live.hold_if_wanted(x, release))
        while decision is not None:
            try:
                await self._carry_out(flow, decision, exchange)
                break
            except UsageError as error:
                problem = str(error)
            decision = await self._held(flow, lambda release, why=problem: self._hold(x, release, why))  # type: ignore[misc]
        await self._queue.run(lambda: live.settled(x))

    def _answered(self, flow: http.HTTPFlow, x: int) -> Exchange:
        live, response, now = self._queue.live, flow.response, self._exchanges.now
        assert response is not None
        body = _body(response)
        headers = Headers(pairs_of(response.headers))
        made = replace(
            live.exchanges[x],
            response=Response(response.status_code, headers, now, body),
            ended=Ended.COMPLETE,
            ended_at=now,
        )
        live.answer_known(made, _AFTER)
        return made

    def error(self, flow: http.HTTPFlow) -> None:
        if flow.metadata.get(_DROPPED):
            self._end(flow, flow.metadata[_DROPPED])
            return
        if flow.metadata.pop(_BUFFERED, False) and flow.response is not None:
            x = self.number_of(flow)
            self._safely(self._recorder.response, x, flow.response.status_code, pairs_of(flow.response.headers))
        super().error(flow)

    def _end(self, flow: http.HTTPFlow, ended: Ended, trailers: list[tuple[str, str]] | None = None) -> None:
        x = self.number_of(flow)
        if x is not None and x in self.open:
            self._unwritten.add(x)
        super()._end(flow, ended, trailers)

    async def _guarded(self, hold: Callable[..., Any], flow: http.HTTPFlow, x: int) -> bool:
        """Hold a call; return False if its client has disconnected."""
        try:
            await hold(flow, x)
        except ClientLeft:
            await self._queue.run(lambda: self._queue.live.client_left(x))
            return False
        except Exception as error:
            self.trouble(f"the debugger failed at exchange x{x}, which continues: {type(error).__name__}: {error}")
        return True


def _body(response: http.Response) -> Body | None:
    data = response.get_content(strict=False)
    return body_of(response.headers.get("content-type"), [(0, data)]) if data else None


def _replace_answer(flow: http.HTTPFlow, answer: Exchange | None) -> None:
    """Replace the answer of the model."""
    if answer is not None and answer.response is not None and flow.response is not None:
        flow.response.content = body_bytes(answer.response.body)
